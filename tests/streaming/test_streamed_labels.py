"""Several labels a row and unknown labels over row blocks: the problems that are fitted in memory."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

import mdlearn
from mdlearn.extend import (
    MULTI_LABEL,
    SEMI_SUPERVISED,
    HingeTerm,
    LogisticTerm,
    MultiLabelModel,
    Parameter,
    RowTerms,
    SemiSupervisedModel,
    Terms,
)

rng = np.random.default_rng(8)
X = rng.standard_normal((150, 4))
COUNTS = rng.integers(0, 4, 150)
LABELS = (X @ rng.standard_normal((4, 3)) + 0.4 * rng.standard_normal((150, 3)) > [0.0, 0.5, 1.5]).astype(int)
LABELS[:40, 1] = 0  # the first blocks have no row of this label
NEVER, ALWAYS = np.zeros((150, 1), int), np.ones((150, 1), int)
TRUTH = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(150), [-0.4, 0.4])
PARTLY = np.where(np.arange(150) % 3 == 0, TRUTH, -1)
PARTLY[:40] = np.where(PARTLY[:40] == 2, -1, PARTLY[:40])  # nor of this class
LOSSES = {
    "hinge": (HingeTerm(0.7),),
    "squared hinge": (HingeTerm(0.7, power=2),),
    "band": (HingeTerm(0.7, power=2), HingeTerm(0.3, side=-1, threshold=2.0, power=2)),
    "logistic": (LogisticTerm(0.7, alpha=1.0, threshold=0.0),),
}


class Each(mdlearn.Objective):
    """A loss of each label, with mean and variance of its margins."""

    name = "each_over_blocks"
    summary = "for tests"
    task = MULTI_LABEL
    loss = "squared hinge"
    moments: ClassVar = {}

    def terms(self, params, total):
        return Terms(loss=LOSSES[self.loss], **self.moments)


class Costly(Each):
    """Rows have costs of their own."""

    def row_terms(self, data, params):
        return RowTerms(np.exp(0.5 * data.X.block(slice(None))[:, 0]))

    def needs_all_rows(self, params):
        return ""


class Pulled(mdlearn.Objective):
    """Squared hinges of the known rows, and D f^2 of the others."""

    name = "pulled_over_blocks"
    summary = "for tests"
    task = SEMI_SUPERVISED
    parameters: ClassVar = {"D": Parameter(0.2, "weight of f^2 where the label is unknown")}

    def terms(self, params, total):
        pull = [HingeTerm(params["D"], threshold=0.0, side=side, power=2) for side in (1, -1)]
        return Terms(loss=(HingeTerm(0.7, power=2), *pull))

    def row_terms(self, data, params):
        known = (data.codes >= 0).astype(float)
        return RowTerms(np.array([known, 1.0 - known, 1.0 - known]))

    def needs_all_rows(self, params):
        return ""


def objective(base, **given):
    return type("Mine", (base,), given)


def cut(X, y, counts, ends=(0, 1, 2, 40, 90, 150)):
    """Blocks, of one row the first two."""
    parts = [slice(*both) for both in pairwise(ends)]
    return [(X[part], y[part], counts[part]) for part in parts]


def parts_of(model):
    """Certificates of all problems."""
    return model.certificate.parts or (model.certificate,)


def check_both(streamed, held, rel=2e-7):
    """Check that both are certified, and that each bound holds for the other's objective, problem by problem."""
    assert type(streamed) is type(held) and np.array_equal(streamed.classes_, held.classes_)
    for one, other in zip(parts_of(streamed), parts_of(held), strict=True):
        for low, high in ((one, other), (other, one)):
            assert low.converged and low.lower_bound <= high.objective + 1e-12 * max(1.0, abs(high.objective))
        assert one.objective == pytest.approx(other.objective, rel=rel, abs=1e-10)


def printed(model, signs, counts, loss, moments, bias):
    """Objectives of all labels at the coefficients of a model, as plain sums."""
    f = X @ model.coef_.T + model.intercept_
    values = []
    for j, y in enumerate(signs.T):
        z, total = y * f[:, j], counts.sum()
        mean = counts @ z / total
        of = {
            "hinge": 0.7 * np.maximum(0, 1 - z),
            "squared hinge": 0.7 * np.maximum(0, 1 - z) ** 2,
            "band": 0.7 * np.maximum(0, 1 - z) ** 2 + 0.3 * np.maximum(0, z - 2) ** 2,
            "logistic": 0.7 * np.logaddexp(0, -z),
        }[loss]
        value = 0.5 * model.coef_[j] @ model.coef_[j] + counts @ of
        value += 0.5 * model.intercept_[j] ** 2 if bias == "regularized" else 0.0
        value += moments.get("variance", 0.0) * (counts @ (z - mean) ** 2) / total - moments.get("mean", 0.0) * mean
        values.append(value)
    return values


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("moments", [{}, {"variance": 5.0}, {"variance": 5.0, "mean": 2.0}], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("more", [None, NEVER, ALWAYS], ids=["some", "never", "always"])
def test_several_labels(loss, moments, bias, more):
    Y = LABELS if more is None else np.hstack([LABELS, more])
    task, given = objective(Each, loss=loss, moments=moments), {"bias": bias, "tol": 1e-8}
    if more is not None and bias == "free" and (loss == "logistic" or ("mean" in moments and loss != "band")):
        return  # rows of one sign have no optimum there
    held = mdlearn.fit(task, X, Y, sample_weight=COUNTS, **given)
    streamed = mdlearn.fit(task, cut(X, Y, COUNTS), None, **given)
    assert type(streamed) is MultiLabelModel and streamed.multiclass == "each"
    check_both(streamed, held)
    for model in (streamed, held):
        values = printed(model, 2.0 * Y - 1.0, COUNTS, loss, moments, bias)
        assert [one.objective for one in model.certificate.parts] == pytest.approx(values, rel=1e-9, abs=1e-12)
    assert (streamed.predict(X) == held.predict(X)).mean() > 0.99


@pytest.mark.parametrize("base", [Each, Costly])
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_several_labels_are_repetitions(base, loss):
    task, Y = objective(base, loss=loss), np.hstack([LABELS, NEVER])
    held = mdlearn.fit(task, X, Y, sample_weight=COUNTS, tol=1e-8)
    check_both(mdlearn.fit(task, cut(X, Y, COUNTS), None, tol=1e-8), held)
    repeated = mdlearn.sources.of_arrays(np.repeat(X, COUNTS, axis=0), np.repeat(Y, COUNTS, axis=0), rows=31)
    check_both(mdlearn.fit(task, repeated, None, tol=1e-8), held)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("k", [2, 3])
def test_unknown_labels(k, bias):
    y = np.where(PARTLY < 0, -1, np.minimum(PARTLY, k - 1))
    given = {"bias": bias, "tol": 1e-9}
    held = mdlearn.fit(Pulled, X, y, sample_weight=COUNTS, **given)
    streamed = mdlearn.fit(Pulled, cut(X, y, COUNTS), None, **given)
    assert type(streamed) is SemiSupervisedModel
    check_both(streamed, held)
    repeated = mdlearn.sources.of_arrays(np.repeat(X, COUNTS, axis=0), np.repeat(y, COUNTS), rows=31)
    check_both(mdlearn.fit(Pulled, repeated, None, **given), held)
    f = (X @ np.atleast_2d(streamed.coef_).T + streamed.intercept_).reshape(150, -1)
    for j, positive in enumerate([1] if k == 2 else range(k)):
        z = np.where(y == positive, 1.0, -1.0) * f[:, j]
        of = np.where(y < 0, 0.2 * f[:, j] ** 2, 0.7 * np.maximum(0, 1 - z) ** 2)
        w, b = np.atleast_2d(streamed.coef_)[j], np.atleast_1d(streamed.intercept_)[j]
        value = 0.5 * w @ w + COUNTS @ of + (0.5 * b * b if bias == "regularized" else 0.0)
        assert parts_of(streamed)[j].objective == pytest.approx(value, rel=1e-10)


def test_class_weights_are_those_of_known_labels():
    for weight in ("balanced", {1: 3.0}):
        given = {"class_weight": weight, "tol": 1e-9}
        held = mdlearn.fit(Pulled, X, PARTLY, sample_weight=COUNTS, **given)
        check_both(mdlearn.fit(Pulled, cut(X, PARTLY, COUNTS), None, **given), held)
    with pytest.raises(ValueError, match="class_weight 'balanced' is for rows of one class each; give a block"):
        mdlearn.fit(Each, cut(X, LABELS, COUNTS), None, class_weight="balanced")


WAYS = {
    "NaN": np.where(PARTLY < 0, np.nan, PARTLY),
    "NaN and a class -1": np.where(PARTLY < 0, np.nan, PARTLY - 1.0),
    "None among strings": np.array([None if one < 0 else "abc"[one] for one in PARTLY], dtype=object),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_to_say_that_a_label_is_unknown(way):
    y = WAYS[way].copy()
    held = mdlearn.fit(Pulled, X, y, tol=1e-9)
    check_both(mdlearn.fit(Pulled, cut(X, y, np.ones(150)), None, tol=1e-9), held)
    # A block that knows no label, and one that knows all, where -1 is the class that it is elsewhere.
    order = np.argsort(PARTLY >= 0, kind="stable")
    blocks = cut(X[order], y[order], np.ones(150), (0, 90, 105, 130, 150))
    check_both(mdlearn.fit(Pulled, blocks, None, tol=1e-9), held)


def test_minus_one_that_may_be_a_class_or_unknown():
    floats, whole = np.tile([-1.0, 1.0], 75), np.where(np.arange(150) % 3, -1, 1)
    told = "labels of some blocks are floats, -1 among them, and unknown ones are not all NaN; give NaN where"
    for y in (floats, [floats, whole]):
        parts = [(X, y)] if isinstance(y, np.ndarray) else [(X, one) for one in y]
        with pytest.raises(ValueError, match=told):
            mdlearn.fit(Pulled, parts, None)


SHAPES = {
    "fewer columns": (
        LABELS[:50, :2],
        "y of a block has 2 columns and that of an earlier one 3 columns; give the same",
    ),
    "one column": (LABELS[:50, :1], r"block 1: y has the shape \(50, 1\); give a matrix of 0 and 1"),
    "no matrix": (LABELS[:50, 0], r"block 1: y has the shape \(50,\); give a matrix of 0 and 1"),
    "fewer rows": (
        LABELS[:49],
        r"block 1: y has the shape \(49, 3\); give a matrix of 0 and 1 with a row per row of X",
    ),
    "other numbers": (2 * LABELS[:50], r"block 1: y holds 2 in row \d+, column \d; give a matrix of 0 and 1"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_shapes_that_differ_between_blocks(case):
    y, told = SHAPES[case]
    with pytest.raises(ValueError, match=told) as caught:
        mdlearn.fit(Each, [(X[:100], LABELS[:100]), (X[100:], y)], None)
    assert "\n" not in str(caught.value)


def test_names_of_labels():
    pd = pytest.importorskip("pandas")
    Y = pd.DataFrame(LABELS, columns=["high", "low", "mid"])
    model = mdlearn.fit(Each, mdlearn.sources.of_arrays(X, Y, rows=60), None)
    assert model.classes_.tolist() == ["high", "low", "mid"]
    with pytest.raises(
        ValueError, match=r"y of a block has 3 columns and that of an earlier one \['high', 'low', 'mid"
    ):
        mdlearn.fit(Each, [(X, Y), (X, LABELS)], None)
    sp = pytest.importorskip("scipy.sparse")
    sparse = mdlearn.fit(Each, mdlearn.sources.of_arrays(X, sp.csr_matrix(LABELS), rows=60), None)
    assert np.array_equal(sparse.coef_, model.coef_)


def test_blocks_without_rows_or_labels():
    empty = (X[:0], LABELS[:0])
    whole = mdlearn.fit(Each, [(X[:70], LABELS[:70]), empty, (X[70:], LABELS[70:])], None, tol=1e-9)
    check_both(whole, mdlearn.fit(Each, X, LABELS, tol=1e-9))
    with pytest.raises(ValueError, match="the blocks have no rows; give at least one row"):
        mdlearn.fit(Each, [empty], None)
    with pytest.raises(ValueError, match="the blocks have no row of positive weight; at least one is needed"):
        mdlearn.fit(Each, [(X, LABELS, np.zeros(150))], None)
    with pytest.raises(
        ValueError, match=r"the blocks have one class with positive weight \(none\); a classifier needs"
    ):
        mdlearn.fit(Pulled, [(X, np.full(150, -1))], None)


def test_unknown_labels_without_terms_of_their_own():
    told = "rows of unknown labels have no sign; say by weights in row_terms which terms they have, where z is f"
    plain = objective(Each, task=SEMI_SUPERVISED)
    silent = objective(Pulled, row_terms=lambda self, data, params: None, needs_all_rows=lambda *_: "")
    for task in (plain, silent):
        for given in ((X, PARTLY), (cut(X, PARTLY, COUNTS), None)):
            with pytest.raises(TypeError, match=told):
                mdlearn.fit(task, *given)
    varied = objective(Pulled, terms=lambda *_: Terms(2.0, loss=3 * LOSSES["hinge"]), needs_all_rows=lambda *_: "")
    for given in ((X, PARTLY), (cut(X, PARTLY, COUNTS), None)):
        with pytest.raises(TypeError, match="no sign, which mean and variance of the margins need; declare neither"):
            mdlearn.fit(varied, *given)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize(("task", "y"), [(Each, LABELS), (Costly, LABELS), (Pulled, PARTLY)])
def test_interrupted_fits_go_on_to_the_same_model(task, y, tmp_path):
    straight = mdlearn.fit(task, mdlearn.sources.of_arrays(X, y, COUNTS, rows=31), None, tol=1e-9)
    for most in (1, 3, None):
        blocks = mdlearn.sources.of_arrays(X, y, COUNTS, rows=31, checkpoint=tmp_path / "fit.npz")
        model = mdlearn.fit(task, blocks, None, max_iter=most, tol=1e-9)
    assert model.certificate.converged and np.array_equal(model.coef_, straight.coef_)
    assert model.certificate.lower_bound == straight.certificate.lower_bound and model.n_iter == straight.n_iter


@pytest.mark.parametrize(("task", "y"), [(Each, LABELS), (Pulled, PARTLY)])
def test_kernels_and_single_steps(task, y):
    given = {"kernel": "rbf", "approximation": "nystroem", "n_components": 20, "tol": 1e-7}
    blocks = mdlearn.sources.of_arrays(X, y, COUNTS, rows=31)
    check_both(
        mdlearn.fit(task, blocks, None, **given), mdlearn.fit(task, X, y, sample_weight=COUNTS, **given), rel=1e-5
    )
    if task is Each:
        best = mdlearn.fit(task, X, y, sample_weight=COUNTS).certificate
        rough = mdlearn.fit(task, blocks, None, solver="asgd", solver_options={"epochs": 5}).certificate
        assert rough.lower_bound <= best.objective <= rough.objective * (1.0 + 1e-12)


class Turning(mdlearn.RowBlocks):
    """Source that gives other labels in later passes."""

    name = "turning"

    def __init__(self, y, other):
        super().__init__([(X, y)])
        self.given_y, self.other, self.passes = y, other, 0

    def __iter__(self):
        self.passes += 1
        return iter([(X, self.given_y if self.passes == 1 else self.other)])


@pytest.mark.parametrize(
    ("task", "y", "other", "told"),
    [
        (Each, LABELS, np.roll(LABELS, 1, axis=0), "of label [012]"),
        (Each, LABELS, LABELS[:, ::-1], "of label [012]"),
        (Pulled, PARTLY, np.where(np.arange(150) == 9, 2, PARTLY), "of (class 2|rows of unknown label|class 0)"),
    ],
)
def test_labels_that_change_between_passes(task, y, other, told):
    with pytest.raises(ValueError, match=f"other rows in the first pass than in a later one: column 0? ?.*{told}"):
        mdlearn.fit(task, Turning(y, other), None)
