"""Ramp losses: stationary points, found outside of the engine, and the way there."""

import itertools

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import mdlearn

SEEDS = range(20)
CASES = {"ramp_svm": ({}, {}), "ramp_ldm": ({"lambda1": 0.6, "lambda2": 0.4}, {"v": 1.2, "a": 0.4})}


def noisy(seed, sample, m=24):
    """Return a small problem in which some labels are wrong, so that margins lie below s."""
    X, y, _, counts, bias = sample(seed, m=m)
    y[2 : 2 + m // 6] = -np.sign(X[2 : 2 + m // 6, 0]).astype(int)
    X[2 : 2 + m // 6] *= 2.0
    return X, y, counts, bias


def columns(X, bias):
    if bias == "none":
        return X, np.ones(X.shape[1])
    return np.column_stack([X, np.ones(len(X))]), np.append(np.ones(X.shape[1]), float(bias == "regularized"))


def coefficients(model, bias):
    w = model.coef_.ravel()
    return w if bias == "none" else np.append(w, model.intercept_)


def ramp_objective(w, A, penalized, counts, C, s, v=0.0, a=0.0):
    z, share = A @ w, counts / counts.sum()
    loss = C * counts @ np.minimum(1.0 - s, np.maximum(0.0, 1.0 - z))
    return 0.5 * penalized @ w**2 + v * share @ (z - share @ z) ** 2 - a * share @ z + loss


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_a_stationary_point(program, sample, name, seed):
    X, y, counts, bias = noisy(seed, sample)
    (F, penalized), C, s = columns(X, bias), 0.8, -0.2
    given, own = CASES[name]
    model = mdlearn.fit(name, X, y, sample_weight=counts, bias=bias, C=C, s=s, tol=1e-10, **given)
    certificate, w, A = model.certificate, coefficients(model, bias), y[:, None] * F
    assert certificate.converged and certificate.kind == "residual" and certificate.lower_bound == -np.inf
    assert certificate.vouched_by == "mdlearn_variants.ramp_problem.RampProblem"
    value = ramp_objective(w, A, penalized, counts, C, s, **own)
    assert certificate.objective == pytest.approx(value, rel=1e-12)
    # The convex problem that touches the objective at w has no smaller value than it.
    z, share = A @ w, counts / counts.sum()
    below = z < s
    hinges = [(C * counts * ~below, 1, 1.0), (C * counts * below, -1, 1.0)]
    least, _ = program(A, penalized, counts, hinges, **own)
    assert least + C * (1.0 - s) * counts[below].sum() == pytest.approx(value, rel=1e-7)
    # The shortest subgradient is 0; on the kink at 1 any slope from 0 to C will do, at s none is taken.
    force = np.where((z < 1.0) & ~below, C * counts, 0.0)
    kink = np.abs(z - 1.0) < 1e-5
    force[kink] = 0.0
    rest = penalized * w - A.T @ force
    rest += A.T @ (2 * own.get("v", 0.0) * share * (z - share @ z) - own.get("a", 0.0) * share)
    if kink.any():
        found = lsq_linear(A[kink].T, rest, bounds=(0.0, C * counts[kink]), tol=1e-14)
        rest = rest - A[kink].T @ found.x
    assert np.linalg.norm(rest) < 1e-4 * max(1.0, float(np.linalg.norm(A.T @ (C * counts))))


def test_rows_lie_below_s_in_these_problems(sample):
    below = 0
    for seed in SEEDS:
        X, y, counts, bias = noisy(seed, sample)
        model = mdlearn.fit("ramp_svm", X, y, sample_weight=counts, bias=bias, C=0.8, s=-0.2)
        below += int((model.margins(X, y) < -0.2).sum())
    assert below > 20


@pytest.mark.parametrize("name", CASES)
def test_the_objective_falls(sample, name):
    lengths = []
    for seed in SEEDS:
        X, y, counts, bias = noisy(seed, sample, m=120)
        given, own = CASES[name]
        values = []
        call = {"sample_weight": counts, "bias": bias, "C": 0.5, "s": 0.0, "tol": 1e-9, **given}
        model = mdlearn.fit(name, X, y, callback=lambda state, values=values: values.append(state.objective), **call)
        assert all(b <= a + 1e-8 * abs(a) for a, b in itertools.pairwise(values))
        # It begins at the solution of the convex machine, and ends no higher.
        plain = {k: v for k, v in call.items() if k != "s"}
        hinge = mdlearn.fit(name.replace("ramp_", ""), X, y, **plain)
        F, penalized = columns(X, bias)
        first = ramp_objective(coefficients(hinge, bias), y[:, None] * F, penalized, counts, 0.5, 0.0, **own)
        assert model.certificate.objective <= first * (1 + 1e-8)
        lengths.append(len(values))
    assert max(lengths) > 2


def test_a_low_s_is_the_convex_machine(sample):
    X, y, counts, _ = noisy(0, sample, m=60)
    for name, (given, _) in CASES.items():
        ramp = mdlearn.fit(name, X, y, sample_weight=counts, s=-100.0, tol=1e-10, **given)
        hinge = mdlearn.fit(name.replace("ramp_", ""), X, y, sample_weight=counts, tol=1e-10, **given)
        assert ramp.certificate.objective == pytest.approx(hinge.certificate.objective, rel=1e-9)


def test_outliers_lose_their_pull():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    far = X.copy(), y.copy()
    far[0][:15], far[1][:15] = [3.0, 3.0], -1
    for kernel in ({"kernel": "linear"}, {"kernel": "rbf", "gamma": 0.3}):
        scores = [mdlearn.fit(name, *far, C=10.0, **kernel).score(X[15:], y[15:]) for name in ("svm", "ramp_svm")]
        assert scores[1] >= scores[0] - 0.01
        if kernel["kernel"] == "linear":
            assert scores[1] > 0.97 > scores[0]


@pytest.mark.parametrize("name", CASES)
def test_classes_of_which_only_some_have_margins_below_s(sample, name):
    X, _, numbers, _, _ = sample(11, m=150)
    y = np.digitize(numbers, [0.0, 1.5])
    y[(y == 1) & (np.random.default_rng(0).random(150) < 0.1)] = 2
    model = mdlearn.fit(name, X, y, s=-1.5, tol=1e-9)
    signs = np.where(y[:, None] == model.classes_, 1, -1)
    assert len({bool(one) for one in (model.decision_function(X) * signs < -1.5).any(axis=0)}) == 2
    for label, part in zip(model.classes_, model.certificate.parts):
        single = mdlearn.fit(name, X, y == label, s=-1.5, tol=1e-9)
        assert part.converged and part.objective == pytest.approx(single.certificate.objective, rel=1e-7)


def test_an_unbounded_bias_is_refused(sample):
    X, y, counts, _ = noisy(1, sample)
    assert counts @ y != 0
    with pytest.raises(ValueError, match=r"unbounded below on classes of unequal weight; got lambda2=0\.5"):
        mdlearn.fit("ramp_ldm", X, y, sample_weight=counts, bias="free", lambda1=0.0, lambda2=0.5)
    assert mdlearn.fit("ramp_ldm", X, y, sample_weight=counts, bias="free", lambda2=0.5).certificate.converged


def test_the_inner_engine_can_be_chosen(sample):
    X, y, counts, _ = noisy(2, sample, m=60)
    models = [
        mdlearn.fit("ramp_ldm", X, y, sample_weight=counts, s=0.0, tol=1e-9, solver_options={"inner": inner})
        for inner in ("auto", "cd", "interior")
    ]
    for model in models[1:]:
        assert model.decision_function(X) == pytest.approx(models[0].decision_function(X), abs=1e-4)
    with pytest.raises(ValueError, match=r"solver 'cccp' cannot take this problem: it takes ramp losses and unkn"):
        mdlearn.fit("svm", X, y, solver="cccp")
