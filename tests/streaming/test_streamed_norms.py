"""Norms of single coefficients over row blocks: the answer of the fit in memory, and that of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from given_losses import LOGISTIC
from pairwise import pairs_first
from scipy.optimize import minimize

import mdlearn
from mdlearn.extend import HingeTerm, LogisticTerm, NormTerm, RowTerms, Terms

SQUARED_HINGE, SQUARES = (HingeTerm(0.6, power=2),), tuple(HingeTerm(0.3, side, power=2) for side in (1, -1))
LOSSES = {
    "squared hinge": SQUARED_HINGE,
    "squares": SQUARES,
    "logistic": (LogisticTerm(0.9),),
    "given": LOGISTIC.terms(1.0),
}
NORMS = {
    "elastic net": (NormTerm(14.0),),
    "by feature": (NormTerm([0.0, 9.0, 40.0, 15.0, 3.0]),),
    "two of them": (NormTerm(9.0), NormTerm([0.0, 2.0, 0.0, 30.0, 0.0])),
}
RESTS = {"loss alone": {}, "variance": {"variance": 30.0, "mean": 5.0}}


def objective_of(loss, norms, by_row=False, task="classification", **rest):
    class Normed(mdlearn.Objective):
        name = "normed"

        def terms(self, params, total):
            return Terms(loss=loss, coefficient_terms=norms, **rest)

        def row_terms(self, data, params):
            return RowTerms(np.exp(0.5 * data.X.block(slice(None))[:, 0])) if by_row else None

        def needs_all_rows(self, params):
            return ""

    Normed.task = task
    return Normed


def rows(m=300, k=2):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((m, 5)) + 0.3
    f = X @ [1.0, -0.6, 0.1, 0.0, 0.0] + rng.standard_normal(m)
    return X, np.digitize(f, np.quantile(f, np.arange(1, k) / k)), f, np.arange(m) % 3 + 0.5


def cut(X, *others):
    return [tuple(one[part] for one in (X, *others)) for part in (slice(0, 90), slice(90, 91), slice(91, X.shape[0]))]


def check_both_fits(streamed, held, rel):
    """Check that both are certified, and that each bound holds for the other's objective."""
    assert held.certificate.converged and streamed.certificate.converged
    for one, other in ((held, streamed), (streamed, held)):
        assert one.certificate.lower_bound <= other.certificate.objective * (1.0 + 1e-13)
    assert streamed.certificate.objective == pytest.approx(held.certificate.objective, rel=rel)


@pytest.mark.parametrize(
    *pairs_first(
        loss=[*LOSSES],
        norms=[*NORMS],
        rest=[*RESTS],
        bias=["none", "regularized", "free"],
    )
)
def test_the_answer_of_the_fit_in_memory(loss, norms, rest, bias):
    X, y, _, counts = rows()
    task, given = objective_of(LOSSES[loss], NORMS[norms], **RESTS[rest]), {"bias": bias, "tol": 1e-8}
    held = mdlearn.fit(task, X, y, sample_weight=counts, **given)
    streamed = mdlearn.fit(task, cut(X, y, counts), None, **given)
    check_both_fits(streamed, held, 2e-8)
    assert np.array_equal(streamed.coef_ == 0, held.coef_ == 0) and streamed.solver == "newton"


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_optimum_of_scipy(task, bias):
    # Of a smooth loss; |w| is the sum of two parts >= 0.
    X, y, f, counts = rows(60)
    weights, terms = np.array([0.0, 9.0, 40.0, 15.0, 3.0]), SQUARES
    kind = objective_of(terms, (NormTerm(weights),), task=task, variance=5.0)
    model = mdlearn.fit(kind, cut(X, f if task == "regression" else y, counts), None, bias=bias, tol=1e-10)
    signs, target = (np.ones(60), f) if task == "regression" else (2.0 * y - 1.0, np.zeros(60))

    def whole(v):
        w, b = v[:5] - v[5:10], v[-1] * (bias != "none")
        z = signs * (X @ w + b) - target
        off = z - counts @ z / counts.sum()
        ridge = 0.5 * w @ w + 0.5 * b * b
        spread = 5.0 * counts @ off**2 / counts.sum()
        return ridge + weights @ (v[:5] + v[5:10]) + spread + sum(term.value(z, counts) for term in terms)

    options = {"ftol": 1e-16, "gtol": 1e-9, "maxiter": 5000, "maxfun": 100000}
    limits = [(0.0, None)] * 10 + [(None, None)]
    best = minimize(whole, np.zeros(11), bounds=limits, method="L-BFGS-B", options=options).fun
    assert model.certificate.converged and model.certificate.objective == pytest.approx(best, rel=1e-7)
    assert model.certificate.lower_bound <= best * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_without_a_squared_norm_one_score_per_class_and_costs_of_rows(loss):
    X, y, _, counts = rows(k=3)
    task = objective_of(LOSSES[loss], NORMS["elastic net"], by_row=True, ridge=0.0, variance=30.0)
    held = mdlearn.fit(task, X, y, sample_weight=counts, tol=1e-8)
    check_both_fits(mdlearn.fit(task, cut(X, y, counts), None, tol=1e-8), held, 2e-8)


@pytest.mark.parametrize("way", ["ovr", "joint"])
def test_several_classes(way):
    X, y, _, counts = rows(k=3)
    task, given = objective_of(SQUARED_HINGE, NORMS["by feature"], variance=30.0), {"multiclass": way, "tol": 1e-8}
    task.multiclass = ("ovr", "joint")
    held = mdlearn.fit(task, X, y, sample_weight=counts, **given)
    check_both_fits(mdlearn.fit(task, cut(X, y, counts), None, **given), held, 2e-8)


def test_a_weight_is_a_repetition():
    X, y, _, _ = rows()
    times, task = np.arange(300) % 4, objective_of(SQUARED_HINGE, NORMS["by feature"], variance=5.0)
    weighted = mdlearn.fit(task, cut(X, y, times.astype(float)), None, tol=1e-9)
    repeated = mdlearn.fit(task, cut(np.repeat(X, times, axis=0), np.repeat(y, times)), None, tol=1e-9)
    check_both_fits(weighted, repeated, 2e-9)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
def test_an_interrupted_fit_comes_to_the_same_bits(tmp_path):
    X, y, _, _ = rows()
    task = objective_of(LOSSES["logistic"], NORMS["by feature"], by_row=True, variance=5.0)
    straight = mdlearn.fit(task, cut(X, y), None, tol=1e-9)
    for most in (1, 2, None):
        kept = mdlearn.RowBlocks(cut(X, y), checkpoint=tmp_path / "fit.npz")
        model = mdlearn.fit(task, kept, None, tol=1e-9, max_iter=most)
    assert model.certificate.converged and np.array_equal(model.coef_, straight.coef_)
    assert model.certificate.lower_bound == straight.certificate.lower_bound and model.n_iter == straight.n_iter


def test_weights_zero_are_no_norm():
    X, y, _, _ = rows()
    hinge = (HingeTerm(0.6),)
    plain, zero = (
        mdlearn.fit(objective_of(hinge, norms), cut(X, y), None, tol=1e-9) for norms in ((), (NormTerm(0.0),))
    )
    assert np.array_equal(plain.coef_, zero.coef_)


REFUSED = {
    "another number": (
        SQUARED_HINGE,
        (NormTerm([1.0, 2.0]),),
        {},
        "a NormTerm of 5 groups needs one weight or 5; got 2",
    ),
    "single steps": (SQUARED_HINGE, (NormTerm(1.0),), {"solver": "asgd"}, "cannot take this problem"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_a_sentence(case):
    loss, norms, given, told = REFUSED[case]
    X, y, _, _ = rows()
    with pytest.raises(ValueError, match=told):
        mdlearn.fit(objective_of(loss, norms), cut(X, y), None, **given)
