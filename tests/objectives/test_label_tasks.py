"""Labels of which some are unknown, and several labels a row: what is read, fitted, judged, held out and kept."""

from typing import ClassVar

import numpy as np
import pytest
from documents import EXAMPLES

import mdlearn
from mdlearn.data.labels import check_label_indicators, check_some_labels
from mdlearn.extend import (
    MULTI_LABEL,
    SEMI_SUPERVISED,
    Column,
    HingeTerm,
    MarginForm,
    MultiLabelModel,
    Parameter,
    SemiSupervisedModel,
    Terms,
)
from mdlearn.model.file.loading import load_model_file
from mdlearn.testing import check_objective
from mdlearn.testing.checks import check_certificate, check_model

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
LABELS = (X @ rng.standard_normal((3, 4)) + 0.3 * rng.standard_normal((60, 4)) > 0).astype(int)
TRUTH = np.digitize(X[:, 0] + 0.2 * rng.standard_normal(60), [-0.4, 0.4])
KNOWN = np.arange(60) % 3 != 0
PARTLY = np.where(KNOWN, TRUTH, -1)
COUNTS = rng.integers(0, 4, 60)


class Each(mdlearn.Objective):
    """LDM of each label."""

    name = "each_label"
    summary = "an objective of several labels"
    formula = "sum_k 1/2 |w_k|^2 + lambda Var(z_k) + C sum max(0, 1-z)^2"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss"), "lam": Parameter(0.5, "weight of the variance")}
    task = MULTI_LABEL

    def terms(self, params, total):
        return Terms(variance=params["lam"], loss=(HingeTerm(params["C"], power=2),))


class Single(Each):
    name = "single_label"
    task = "classification"


class Small(mdlearn.Objective):
    """The known rows' squared hinges, and a pull of f to 0 by all rows."""

    name = "small_unknown"
    summary = "an objective of unknown labels"
    formula = "1/2 |w|^2 + Var(f) + C sum_known max(0, 1-z)^2"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}
    task = SEMI_SUPERVISED

    def form(self, data, features, bias, params):
        k = len(data.classes)
        by_row = mdlearn.extend.RowTerms(weights=(data.codes >= 0).astype(float))
        loss = (HingeTerm(params["C"], power=2),)
        signs = [np.where(data.codes == code, 1.0, -1.0) for code in ([1] if k == 2 else range(k))]
        columns = tuple(Column(y, data.counts, 0.0, 0.0, loss, by_row=by_row) for y in signs)
        return MarginForm(features, columns, bias)


def look_up(kind, name):
    return {"each_label": Each, "small_unknown": Small}[name]


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        ([1, -1, 0, 1], [0, 1], [1, -1, 0, 1]),
        ([1.0, np.nan, -1.0, 1.0], [-1.0, 1.0], [1, -1, 0, 1]),
        (np.array(["b", None, "a", "b"], dtype=object), ["a", "b"], [1, -1, 0, 1]),
        (np.array(["b", -1, "a", np.nan], dtype=object), ["a", "b"], [1, -1, 0, -1]),
        (np.array([True, None, False, True], dtype=object), [False, True], [1, -1, 0, 1]),
        ([1, 2, 1, 2], [1, 2], [0, 1, 0, 1]),
    ],
)
def test_unknown_labels_are_read(y, classes, codes):
    found = check_some_labels(y, 4)
    assert found[0].tolist() == classes and found[1].tolist() == codes


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (
            [1.0, -1.0, 0.0, 1.0],
            "y holds floats, -1 in row 1 and no NaN; give NaN where the label is unknown, or whole",
        ),
        ([1, -1, 1, 1], r"y has one class of known labels with positive weight \(1\)"),
        ([-1, -1, -1, -1], "y has no class of known labels with positive weight; a classifier needs at least two"),
        ([[1], [0, 1], [1], [0]], "y holds sequences of different lengths; give one label"),
        ([1, 0, -1], r"X has 4 rows but y has 3 label \(-1 where it is unknown\)s"),
        ([1.0, np.inf, 0.0, np.nan], "y contains NaN or infinity in row 1"),
    ],
)
def test_faults_of_partly_known_labels(y, told):
    with pytest.raises(ValueError, match=told):
        mdlearn.fit(Small, X[:4], y)


@pytest.mark.parametrize(
    ("y", "error", "told"),
    [
        (None, TypeError, "y is None; give a matrix with one row per row of X"),
        (
            TRUTH,
            ValueError,
            r"y has the shape \(60,\); give a matrix of 0 and 1 with a row per row of X, 60, and a column",
        ),
        (LABELS[:, :1], ValueError, r"y has the shape \(60, 1\)"),
        (LABELS[:9], ValueError, r"y has the shape \(9, 4\)"),
        (LABELS * 2, ValueError, r"y holds 2 in row \d+, column \d; give a matrix of 0 and 1"),
        (LABELS.astype(str), TypeError, "y holds values of dtype <U"),
        (np.ma.masked_array(LABELS, LABELS > 0), ValueError, "y has masked entries; give a matrix of 0 and 1"),
        ([[1], [0, 1]] * 30, ValueError, "y holds sequences of different lengths; give a matrix of 0 and 1"),
    ],
)
def test_faults_of_several_labels(y, error, told):
    with pytest.raises(error, match=told):
        mdlearn.fit(Each, X, y)


def test_matrices_of_all_kinds_are_read():
    pd, sp = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    for y in (LABELS.astype(bool), LABELS.astype(float), sp.csr_matrix(LABELS), LABELS.tolist()):
        names, found = check_label_indicators(y, 60)
        assert np.array_equal(found, LABELS > 0) and names.tolist() == [0, 1, 2, 3]
    assert check_label_indicators(pd.DataFrame(LABELS, columns=list("abcd")), 60)[0].tolist() == list("abcd")
    assert check_some_labels(pd.array([1, None, 0], dtype="Int64"), 3)[1].tolist() == [1, -1, 0]
    assert check_label_indicators(pd.DataFrame(LABELS, columns=list("bacd")), 60)[0].tolist() == [0, 1, 2, 3]


# ---------------------------------------------------------------- several labels


@pytest.mark.slow
@pytest.mark.parametrize("objective", [Each, Small])
def test_conformance(objective):
    check_objective(objective)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("k", [2, 4])
def test_each_label_has_the_problem_of_two_classes(k, kernel):
    model = mdlearn.fit(Each, X, LABELS[:, :k], sample_weight=COUNTS, kernel=kernel, tol=1e-12)
    assert type(model) is MultiLabelModel and model.multiclass == "each" and model.certificate.converged
    f = model.decision_function(X)
    for j in range(k):
        single = mdlearn.fit(Single, X, LABELS[:, j], sample_weight=COUNTS, kernel=kernel, tol=1e-12)
        assert f[:, j] == pytest.approx(single.decision_function(X), abs=1e-5)
        assert model.certificate.parts[j].objective == pytest.approx(single.certificate.objective, rel=1e-10)
        assert model.n_support_[j] == (LABELS[model.support_, j] > 0).sum()
    predicted = model.predict(X)
    assert np.array_equal(predicted, f >= 0) and predicted.dtype.kind == "i"
    right = (predicted == LABELS[:, :k]).all(axis=1)
    assert model.score(X, LABELS[:, :k], COUNTS) == pytest.approx(COUNTS @ right / COUNTS.sum())
    z = np.where(LABELS[:, :k] > 0, f, -f)
    assert np.array_equal(model.margins(X, LABELS[:, :k], per_class=True), z)
    assert np.array_equal(model.margins(X, LABELS[:, :k]), z.min(axis=1)) and not hasattr(model, "predict_proba")
    if kernel == "linear":
        lengths = np.linalg.norm(model.coef_, axis=1)
        assert model.margins(X, LABELS[:, :k], True, True) == pytest.approx(z / lengths)


def test_a_label_that_no_row_has():
    y = LABELS.copy()
    y[:, 1] = 0
    model = mdlearn.fit(Each, X, y)
    assert model.certificate.converged and not model.predict(X)[:, 1].any()


def test_scores_of_several_labels():
    f1_score = pytest.importorskip("sklearn.metrics").f1_score
    weights = np.maximum(COUNTS, 1)
    (fold,) = folds = [(np.arange(40), np.arange(40, 60))]
    model = mdlearn.fit(Each, X[:40], LABELS[:40], sample_weight=weights[:40], tol=1e-10)
    truth, found, own = LABELS[fold[1]], model.predict(X[fold[1]]), weights[fold[1]]
    own_scores = {
        None: np.average((truth == found).all(axis=1), weights=own),
        "hamming": np.average((truth == found).mean(axis=1), weights=own),
        "f1_macro": f1_score(truth, found, average="macro", sample_weight=own),
        "f1_micro": f1_score(truth, found, average="micro", sample_weight=own),
    }
    assert len(set(own_scores.values())) == 4
    for name, score in own_scores.items():
        held_out = mdlearn.cross_validate(Each, X, LABELS, cv=folds, scoring=name, sample_weight=weights, tol=1e-10)
        assert held_out.scores == pytest.approx([score])
        path = mdlearn.fit_path(Each, X[:40], LABELS[:40], grid={"C": [1.0]}, sample_weight=weights[:40], tol=1e-10)
        assert path.score(X[40:], truth, own, scoring=name) == pytest.approx([score])
    with pytest.raises(
        ValueError, match="scoring 'auc' is unknown for multi-label; give one of accuracy, hamming, f1_"
    ):
        mdlearn.cross_validate(Each, X, LABELS, scoring="auc")


def test_folds_and_leaving_one_out_of_several_labels():
    found = mdlearn.cross_validate(Each, X, LABELS, cv=4)
    tests = np.concatenate([test for _, test in found.folds])
    assert sorted(tests) == list(range(60)) and found.decision.shape == (60, 4) and not np.isnan(found.decision).any()
    small, y = X[:12], LABELS[:12]
    by_hand = [(np.delete(np.arange(12), i), [i]) for i in range(12)]
    loo = mdlearn.cross_validate(Each, small, y, cv="loo", tol=1e-12)
    refits = mdlearn.cross_validate(Each, small, y, cv=by_hand, tol=1e-12)
    assert loo.decision == pytest.approx(refits.decision, abs=1e-5)
    # Equal rows stay in one fold, whatever their labels.
    twice = np.vstack([X, X])
    other = np.vstack([LABELS, LABELS[::-1]])
    for train, test in mdlearn.cross_validate(Each, twice, other, cv=3).folds:
        assert not set(train % 60) & set(test % 60)


# ---------------------------------------------------------------- unknown labels


def test_known_labels_alone_are_judged_and_weighed():
    model = mdlearn.fit(Small, X, PARTLY, sample_weight=np.maximum(COUNTS, 1))
    assert type(model) is SemiSupervisedModel and model.classes_.tolist() == [0, 1, 2]
    right = model.predict(X) == PARTLY
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    assert model.score(X, PARTLY) == right[KNOWN].mean()
    assert model.score(X, PARTLY, weights) == pytest.approx(weights[KNOWN] @ right[KNOWN] / weights[KNOWN].sum())
    with pytest.raises(ValueError, match="y has no known label in a row of positive weight"):
        model.score(X, np.full(60, -1))
    with pytest.raises(ValueError, match="y holds the label 7 in row 1, which the model does not know"):
        model.score(X[:3], [-1, 0, 7])
    # Of the unknown rows nothing counts here: the fit is that of the others, class weights included.
    for weight in ("balanced", {1: 3.0}):
        whole = mdlearn.fit(Small, X, PARTLY, class_weight=weight, tol=1e-12)
        part = mdlearn.fit(Small, X[KNOWN], PARTLY[KNOWN], class_weight=weight, tol=1e-12)
        assert whole.decision_function(X) == pytest.approx(part.decision_function(X), abs=1e-5)
        sizes = {c: KNOWN.sum() / (3 * (PARTLY == c).sum()) for c in range(3)} if weight == "balanced" else weight
        by_row = np.array([sizes.get(label, 1.0) for label in PARTLY])
        rows = mdlearn.fit(Small, X, PARTLY, sample_weight=by_row, tol=1e-12)
        assert whole.decision_function(X) == pytest.approx(rows.decision_function(X), abs=1e-5)


def test_rows_of_unknown_labels_train_in_every_fold():
    twins = np.vstack([X, X[:1], X[1:2]])  # row 60 equals row 0 (unknown), row 61 equals row 1 (known)
    y = np.append(PARTLY, [-1, -1])
    unknown = np.flatnonzero(y < 0)
    found = mdlearn.cross_validate(Small, twins, y, cv=5)
    tests = np.concatenate([test for _, test in found.folds])
    assert sorted(tests) == np.flatnonzero(y >= 0).tolist() and np.isnan(found.decision[unknown]).all()
    for train, test in found.folds:
        apart = [61] if 1 in test else []  # the twin of a row that is held out does not train
        assert sorted(set(unknown) - set(apart)) == sorted(set(train) & set(unknown))
        assert np.bincount(y[test]).min() >= np.bincount(y[y >= 0]).min() // 5
    for (train, test), score in zip(found.folds, found.scores):
        assert score == pytest.approx(mdlearn.fit(Small, twins[train], y[train]).score(twins[test], y[test]))
    assert mdlearn.cross_validate(Small, twins, y, cv=5, scoring="f1_macro").scores.shape == (5,)


def test_folds_of_the_caller_hold_out_known_labels():
    found = mdlearn.cross_validate(Small, X, PARTLY, cv=[(np.arange(30, 60), np.arange(30))])
    assert found.folds[0][1].tolist() == np.flatnonzero(KNOWN[:30]).tolist()
    with pytest.raises(ValueError, match="test part of fold 0 has no row of positive weight and a known label"):
        mdlearn.cross_validate(Small, X, PARTLY, cv=[(np.arange(1, 60), [0])])
    with pytest.raises(
        ValueError, match="cv is 50 but there are 40 distinct rows of positive weight and a known label"
    ):
        mdlearn.cross_validate(Small, X, PARTLY, cv=50)
    with pytest.raises(ValueError, match="cv='loo' needs rows of known labels"):
        mdlearn.cross_validate(Small, X, PARTLY, cv="loo")


def test_unknown_labels_have_no_pairs_and_no_signs():
    with pytest.raises(ValueError, match="multiclass 'ovo' is not possible here; give one of auto, ovr"):
        mdlearn.fit(Small, X, PARTLY, multiclass="ovo")
    declared = type("Declared", (Each,), {"task": SEMI_SUPERVISED, "name": "declared"})
    with pytest.raises(TypeError, match="rows of unknown labels have no sign; say by weights in row_terms which terms"):
        mdlearn.fit(declared, X, PARTLY)
    told = "objective 'small_unknown' needs X and y, not row blocks: it makes its form of all rows"
    with pytest.raises(ValueError, match=told):
        mdlearn.fit(Small, [(X, PARTLY)], None)


# ---------------------------------------------------------------- files, warm starts, checks


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("objective", "y"), [(Each, LABELS), (Each, LABELS[:, :2]), (Small, PARTLY), (Small, PARTLY % 2 - 2 * ~KNOWN)]
)
def test_files_and_warm_starts(objective, y, kernel, tmp_path):
    model = mdlearn.fit(objective, X, y, kernel=kernel)
    model.save(tmp_path / "model.npz")
    again, _ = load_model_file(tmp_path / "model.npz", look_up)
    assert type(again) is type(model) and again.multiclass == model.multiclass
    assert np.array_equal(again.decision_function(X), model.decision_function(X)) and again.score(X, y) > 0.3
    assert np.array_equal(again.n_support_, model.n_support_)
    warm = mdlearn.fit(objective, X, y, kernel=kernel, warm_start=model, C=2.0, tol=1e-10)
    cold = mdlearn.fit(objective, X, y, kernel=kernel, C=2.0, tol=1e-10)
    assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=1e-9)
    path = mdlearn.fit_path(objective, X, y, grid={"C": [1.0, 2.0]}, kernel=kernel, tol=1e-10)
    assert path.predict(X).shape[1:] == model.predict(X).shape
    assert path[1].certificate.objective == pytest.approx(cold.certificate.objective, rel=1e-9)


def test_the_example_of_the_documents():
    namespace = {"__name__": "example"}
    exec(EXAMPLES["labels"], namespace)
    model = mdlearn.fit(namespace["Tags"], X, LABELS, C=3.0, tol=1e-10)
    single = mdlearn.fit(Single, X, LABELS[:, 3], C=3.0, lam=0.0, tol=1e-10)
    assert model.decision_function(X)[:, 3] == pytest.approx(single.decision_function(X), abs=1e-4)


def test_a_plugin_may_bring_a_model_of_its_own():
    kind = type("Any", (MultiLabelModel,), {"task": "any-label", "score": lambda self, X, y, w=None: 0.5})
    own = type("Own", (Each,), {"task": mdlearn.extend.Task("indicators", kind, by_class=True)})
    assert mdlearn.cross_validate(own, X, LABELS, cv=3).scores.tolist() == [0.5] * 3


def test_faults_that_the_checks_find():
    turned = type(
        "Turned", (MultiLabelModel,), {"task": "turned", "predict": lambda self, X: np.ones((len(X), 3), int)}
    )
    faulty = type("Faulty", (Each,), {"task": mdlearn.extend.Task("indicators", turned, by_class=True)})
    with pytest.raises(AssertionError, match="predict is not predictions"):
        check_model(faulty)

    class Doubled(Each):
        def form(self, data, features, bias, params):
            form = super().form(data, features, bias, params)
            columns = (*form.columns[:2], Column(-form.columns[2].y, data.counts, 0.5, 0.0, form.columns[2].terms))
            return MarginForm(features, columns, bias)

    with pytest.raises(AssertionError, match=r"the certificate says .* but terms\(\) at the coefficients give"):
        check_certificate(Doubled)

    class Lacking(Each):
        def form(self, data, features, bias, params):
            return MarginForm(features, super().form(data, features, bias, params).columns[:2], bias)

    with pytest.raises(TypeError, match="returned 2 columns for 4 labels, 4 are needed"):
        mdlearn.fit(Lacking, X, LABELS)
