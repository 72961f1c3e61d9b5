"""Weights and thresholds by row over row blocks: the answer of the fit in memory, its optimum, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from pairwise import pairs_first
from row_terms_cases import LOSSES, Formula, objective_of, sample

import mdlearn
from mdlearn.extend import GivenLoss, HingeTerm, RowTerms, Terms, plus, row_values

RESTS = {"loss alone": {}, "variance": {"v": 5.0}, "variance and mean": {"v": 5.0, "a": 1.5}}
BY_ROW = {"weights": ("weights",), "shifts": ("shifts",), "both": ("weights", "shifts")}
TAKEN = [name for name in LOSSES if name != "both powers"]
TUBE = (HingeTerm(0.7, side=1, threshold=-0.3), HingeTerm(0.4, side=-1, threshold=0.3))
SQUARES = tuple(HingeTerm(0.5, side=side, threshold=0.0, power=2) for side in (1, -1))
HUBER = GivenLoss(
    lambda t: np.where(np.abs(t) <= 0.5, 0.5 * t * t, 0.5 * np.abs(t) - 0.125),
    lambda t: np.clip(t, -0.5, 0.5),
    lambda t: np.where(np.abs(t) <= 0.5, 1.0, 0.0),
).terms(0.9)
RESIDUALS = {"tube": TUBE, "squares": SQUARES, "Huber": HUBER}


def streamed(kind):
    """A class that says its row terms follow from each row alone."""
    return type("Streamed", (kind,), {"needs_all_rows": lambda self, params: ""})


def cut(X, *others):
    m = X.shape[0]
    return [tuple(one[part] for one in (X, *others)) for part in (slice(0, 9), slice(9, 10), slice(9, 9), slice(10, m))]


def residuals(loss, **rest):
    """A regression with these terms, and weights and shifts by row."""
    kind = streamed(objective_of(loss))
    kind.task, kind.terms = "regression", lambda self, params, total: Terms(params["v"], params["a"], loss, **rest)
    return kind


def numbers(m=160):
    X, _, counts, weights, shifts = sample(m)
    return X, X @ [1.0, -2.0, 0.5] + 1.5 + np.random.default_rng(1).standard_t(3, m), counts, weights, shifts


def check_both_fits(one, other, rel):
    """Check that both are certified, and that each bound holds for the other's objective."""
    assert one.certificate.converged and other.certificate.converged
    for a, b in ((one, other), (other, one)):
        assert a.certificate.lower_bound <= b.certificate.objective + 1e-13 * abs(b.certificate.objective)
    assert one.certificate.objective == pytest.approx(other.certificate.objective, rel=rel)


@pytest.mark.parametrize(
    *pairs_first(loss=TAKEN, by_row=[*BY_ROW], rest=[*RESTS], bias=["none", "regularized", "free"], held=[None, 2])
)
def test_the_optimum(loss, by_row, rest, bias, held):
    X, y, counts, weights, shifts = sample()
    given = {name: {"weights": weights, "shifts": shifts}[name] for name in BY_ROW[by_row]}
    task = streamed(objective_of(LOSSES[loss][0]))
    blocks = mdlearn.RowBlocks(cut(X, y, counts), held=held)
    model = mdlearn.fit(task, blocks, None, bias=bias, tol=1e-9, **RESTS[rest], **given)
    signs, mine = 2.0 * y - 1.0, {name: one[counts > 0] for name, one in given.items()}
    kept = X[counts > 0], np.eye(3), signs[counts > 0], counts[counts > 0].astype(float)
    formula = Formula(loss, *kept, bias, **RESTS[rest], **mine)
    low, high = formula.optimum()
    found = model.certificate
    assert found.converged and found.lower_bound <= high + 1e-12 * abs(high)
    assert found.objective >= low - 1e-12 * abs(low) and found.objective <= high + 2e-9 * abs(high)
    u = model.coef_[0] if bias == "none" else np.append(model.coef_[0], model.intercept_)
    assert found.objective == pytest.approx(formula.value(u), rel=1e-10)


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("rest", RESTS)
@pytest.mark.parametrize("loss", RESIDUALS)
def test_a_regression_in_memory(loss, rest, bias):
    X, y, counts, weights, shifts = numbers()
    task = residuals(RESIDUALS[loss])
    given = {"bias": bias, "tol": 1e-8, "weights": weights, "shifts": 3.0 + shifts, **RESTS[rest]}
    held = mdlearn.fit(task, X, y, sample_weight=counts, **given)
    check_both_fits(mdlearn.fit(task, cut(X, y, counts), None, **given), held, 2e-8)


@pytest.mark.parametrize("loss", ["hinge", "squared hinge", "given"])
def test_one_score_per_class(loss):
    X, y, counts, weights, shifts = sample(90)
    y = y + (X[:, 1] > 0.5)
    task, given = streamed(objective_of(LOSSES[loss][0])), {"v": 3.0, "weights": weights, "shifts": shifts, "tol": 1e-8}
    held = mdlearn.fit(task, X, y, sample_weight=counts, class_weight={0: 2.0, 1: 0.5}, **given)
    model = mdlearn.fit(task, cut(X, y, counts), None, class_weight={0: 2.0, 1: 0.5}, **given)
    check_both_fits(model, held, 2e-8)
    assert np.array_equal(model.predict(X), held.predict(X))


@pytest.mark.parametrize("loss", ["squared hinge", "logistic", "given"])
def test_under_a_penalty(loss):
    X, y, counts, weights, shifts = sample(90)
    kind = streamed(objective_of(LOSSES[loss][0]))
    kind.terms = lambda self, params, total: Terms(params["v"], 0.0, LOSSES[loss][0], penalty=2.0)
    given = {"v": 3.0, "weights": weights, "shifts": shifts, "bias": "none", "tol": 1e-8}
    held = mdlearn.fit(kind, X, y, sample_weight=counts, **given)
    check_both_fits(mdlearn.fit(kind, cut(X, y, counts), None, **given), held, 2e-8)


@pytest.mark.parametrize("loss", ["squared hinge", "logistic"])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_without_a_squared_norm(loss, scale):
    X, y, counts, weights, shifts = sample(90)
    kind = streamed(objective_of(LOSSES[loss][0], ridge=0.0))
    given = {"weights": scale * weights, "shifts": shifts, "tol": 1e-8, "bias": "free"}
    held = mdlearn.fit(kind, X, y, sample_weight=counts, **given)
    check_both_fits(mdlearn.fit(kind, cut(X, y, counts), None, **given), held, 2e-8)


@pytest.mark.parametrize("scale", [1e-9, 1e5])
@pytest.mark.parametrize("loss", ["hinge", "squared hinge", "given"])
def test_weights_of_any_size(loss, scale):
    X, y, counts, weights, shifts = sample(90)
    task = streamed(objective_of(LOSSES[loss][0]))
    given = {"weights": scale * weights, "shifts": shifts, "bias": "free", "tol": 1e-7}
    held = mdlearn.fit(task, X, y, sample_weight=counts, **given)
    check_both_fits(mdlearn.fit(task, cut(X, y, counts), None, **given), held, 2e-7)


@pytest.mark.parametrize("loss", ["two hinges", "squared", "given"])
def test_a_class_without_a_loss_beside_a_free_bias(loss):
    # Losses of two sides meet the condition of the bias within the other class.
    X, y, counts, weights, shifts = sample(160)
    task = streamed(objective_of(LOSSES[loss][0]))
    given = {"weights": np.where(y == 1, 0.0, 50.0 * weights), "shifts": shifts, "bias": "free", "tol": 1e-8}
    held = mdlearn.fit(task, X, y, sample_weight=counts, **given)
    check_both_fits(mdlearn.fit(task, cut(X, y, counts), None, **given), held, 2e-8)


@pytest.mark.parametrize("loss", TAKEN)
def test_a_weight_is_a_repetition(loss):
    X, y, counts, weights, shifts = sample(60)
    counts[5:30] = 3
    task, given = streamed(objective_of(LOSSES[loss][0])), {"v": 2.0, "bias": "free", "tol": 1e-10}
    weighted = mdlearn.fit(task, cut(X, y, counts), None, weights=weights, shifts=shifts, **given)
    X, y, weights, shifts = (np.repeat(one, counts, axis=0) for one in (X, y, weights, shifts))
    check_both_fits(weighted, mdlearn.fit(task, cut(X, y), None, weights=weights, shifts=shifts, **given), 1e-9)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["hinge", "two hinges", "squared hinge", "given"])
def test_an_interrupted_fit_comes_to_the_same_bits(loss, tmp_path):
    X, y, counts, weights, shifts = sample(160)
    task, given = streamed(objective_of(LOSSES[loss][0])), {"v": 2.0, "weights": weights, "shifts": shifts, "tol": 1e-9}
    straight = mdlearn.fit(task, mdlearn.RowBlocks(cut(X, y, counts), held=9), None, **given)
    path = tmp_path / "fit.npz"
    for most in (1, 2, 4, None):
        kept = mdlearn.RowBlocks(cut(X, y, counts), checkpoint=path, held=9)
        model = mdlearn.fit(task, kept, None, max_iter=most, **given)
    assert model.certificate.converged and np.array_equal(model.coef_, straight.coef_)
    assert model.certificate.lower_bound == straight.certificate.lower_bound and model.n_iter == straight.n_iter
    other = mdlearn.RowBlocks(cut(X, y, counts), checkpoint=path, held=9)
    with pytest.raises(ValueError, match="belongs to another fit: its weights"):
        mdlearn.fit(task, other, None, **{**given, "weights": weights + 1.0})


class Elsewhere(mdlearn.RowBlocks):
    """Blocks of a source of a plugin, to whose processes work is sent."""

    name = "elsewhere"

    def reduced(self, make):
        total = None
        for number, block in enumerate(self):
            total = plus(total, pickle.loads(pickle.dumps(make))(number, block))
            yield
        return pickle.loads(pickle.dumps(total))


class ByRow(mdlearn.Objective):
    """Costs that the rows say: a column of them, and the labels."""

    name = "by_row"
    summary = "for tests"

    def terms(self, params, total):
        return Terms(2.0, 0.0, (HingeTerm(1.0),))

    def row_terms(self, data, params):
        return RowTerms(np.exp(column(data)) * np.where(data.codes == 1, 2.0, 0.5))

    def needs_all_rows(self, params):
        return ""


@pytest.mark.parametrize("source", [mdlearn.RowBlocks, Elsewhere])
@pytest.mark.parametrize("given", [{}, {"kernel": "rbf", "approximation": "nystroem", "n_components": 9}], ids=str)
def test_costs_that_rows_say(source, given):
    X, y, counts, _, _ = sample(120)
    held = mdlearn.fit(ByRow, X, y, sample_weight=counts, tol=1e-8, **given)
    check_both_fits(mdlearn.fit(ByRow, source(cut(X, y, counts)), None, tol=1e-8, **given), held, 2e-8)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["sgd", "asgd"])
def test_stochastic_epochs(solver):
    X, y, counts, weights, shifts = sample(3000)
    given = {"weights": 0.01 * weights, "shifts": shifts}
    blocks = [(X[i : i + 700], y[i : i + 700], counts[i : i + 700]) for i in range(0, 3000, 700)]
    task = streamed(objective_of(LOSSES["hinge"][0]))
    best = mdlearn.fit(task, X, y, sample_weight=counts, tol=1e-9, **given).certificate
    model = mdlearn.fit(task, blocks, None, solver=solver, solver_options={"epochs": 20}, **given)
    assert model.certificate.lower_bound <= best.objective <= model.certificate.objective * (1.0 + 1e-12)
    assert model.certificate.objective <= 1.02 * best.objective


def test_row_terms_that_are_none_change_nothing():
    X, y, counts, _, _ = sample(120)
    task, plain = (streamed(objective_of(LOSSES["hinge"][0])) for _ in range(2))
    plain.row_terms = mdlearn.Objective.row_terms
    found, other = (mdlearn.fit(one, cut(X, y, counts), None, tol=1e-9) for one in (task, plain))
    check_both_fits(found, other, 1e-9)


def column(data):
    return data.X.block(slice(None))[:, 1]


FAULTS = {
    "the mean of the rows": lambda data: RowTerms(shifts=column(data) - column(data).mean()),
    "the number of rows": lambda data: RowTerms(np.full(len(data.codes), 1.0 / len(data.codes))),
    "their weight": lambda data: RowTerms(shifts=np.full(len(data.codes), data.total)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_depends_on_other_rows_is_refused(fault):
    X, y, counts, _, _ = sample(60)
    task = type("Beside", (ByRow,), {"row_terms": lambda self, data, params: FAULTS[fault](data)})
    task.needs_all_rows = lambda self, params: ""
    with pytest.raises(TypeError, match="row_terms says other things of rows without those beside them"):
        mdlearn.fit(task, cut(X, y, counts), None)


def test_an_answer_covers_the_row_terms_of_its_own_class():
    class Other(ByRow):
        def row_terms(self, data, params):
            return RowTerms(np.ones(len(data.codes)))

    X, y, _, _, _ = sample(60)
    with pytest.raises(ValueError, match="its row_terms may need all rows, unless"):
        mdlearn.fit(Other, cut(X, y), None)
    with pytest.raises(ValueError, match="may need all rows, unless its class says by needs_all_rows that returns ''"):
        mdlearn.fit(objective_of(LOSSES["hinge"][0]), cut(X, y), None)


@pytest.mark.parametrize("solver", ["auto", "asgd"])
def test_blocks_of_other_sizes_in_a_later_pass(solver):
    X, y, _, weights, _ = sample(60)
    at = iter([10, *[11] * 99])

    def blocks():
        here = next(at)
        return [(X[:here], y[:here]), (X[here:], y[here:])]

    with pytest.raises(ValueError, match="block 0 has another number of rows than in the first pass"):
        mdlearn.fit(streamed(objective_of(LOSSES["hinge"][0])), blocks, None, solver=solver, weights=weights)


SENTENCES = {
    "one block's numbers": ({"weights": np.ones(9)}, r"weights needs one number per row of X, shape \(24,\)"),
    "negative": ({"weights": -np.ones(24)}, "weights of loss terms by row need to be >= 0"),
    "no number": ({"shifts": np.full(24, np.nan)}, "shifts has NaN or infinity in row 0"),
    "beyond": ({"weights": np.full(24, 1e300)}, "weights of loss terms by row are beyond"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_refused_in_a_sentence(case):
    given, told = SENTENCES[case]
    X, y, _, _, _ = sample()
    with pytest.raises(ValueError, match=told):
        mdlearn.fit(streamed(objective_of(LOSSES["hinge"][0])), cut(X, y), None, **given)


def test_a_mean_that_outweighs_the_losses_by_row():
    X, y, counts, weights, _ = numbers()
    task, given = residuals(HUBER), {"a": 100.0, "bias": "free"}
    with pytest.raises(ValueError, match="unbounded below: the mean"):
        mdlearn.fit(task, cut(X, y, counts), None, weights=0.01 * weights, **given)
    check_both_fits(
        mdlearn.fit(task, cut(X, y, counts), None, weights=9.0 * weights, tol=1e-8, **given),
        mdlearn.fit(task, X, y, sample_weight=counts, weights=9.0 * weights, tol=1e-8, **given),
        2e-8,
    )


def test_row_values_are_those_of_the_rows_of_a_block():
    X, y, counts, weights, _ = sample(60)
    seen = []

    class Seen(ByRow):
        parameters = objective_of(()).parameters

        def row_terms(self, data, params):
            seen.append((data.X.block(slice(None)), row_values(data, params["weights"], "weights")))
            return None

        def needs_all_rows(self, params):
            return ""

    mdlearn.fit(Seen, cut(X, y, counts), None, weights=weights)
    for rows, own in seen:
        at = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows]
        assert np.array_equal(weights[at], own)
