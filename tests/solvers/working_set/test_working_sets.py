"""Working sets of kernel problems: the optimum, conditions outside the solver, and each way to a Hessian."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn._solvers import bounded_quadratic as greedy
from mdlearn._solvers.known_rows import KnownRows
from mdlearn.data.features.gram import gram_matrix_by_blocks
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.solvers.dual_hessian import cholesky_ordered
from mdlearn.solvers.dual_hessian import hessian as hessians
from mdlearn.solvers.working_set import initialise, working_set_ascent

GAMMA = 0.3


def data(seed, m=90, d=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(m) > 0.2, 1.0, -1.0)
    return X, y, rng.integers(1, 4, m).astype(float)


def drain(work):
    try:
        while True:
            next(work)
    except StopIteration as done:
        return done.value


@pytest.fixture(params=["rows", "all", "deflated", "factored"])
def way(request, monkeypatch):
    """Limits low enough for small problems: rows of the support, all rows, leading directions, one factor."""
    used = []
    run = working_set_ascent.WorkingSetAscent.run

    def watched(self):
        used.append(type(self.hessian).__name__)
        return run(self)

    monkeypatch.setattr(working_set_ascent.WorkingSetAscent, "run", watched)
    monkeypatch.setattr(initialise, "LEAST_SAMPLE_ROWS", 20)
    if request.param == "rows":
        monkeypatch.setattr(initialise, "WHOLE_GRAM_ROWS", 10)
    if request.param in ("deflated", "factored"):
        monkeypatch.setattr(initialise, "PLAIN", 1)
        monkeypatch.setattr(hessians, "REST", 0.9 if request.param == "deflated" else -1.0)
    return request.param, used


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("C", [0.05, 1.0, 300.0])
@pytest.mark.parametrize("name, weights", [("svm", {}), ("ldm", {"lambda1": 0.5, "lambda2": 1.0})])
def test_conditions_of_the_optimum(way, bias, C, name, weights):
    """z >= 1 where beta = 0, z <= 1 at the cap, z = 1 between; alpha follows from beta and the margins."""
    X, y, counts = data(4)
    model = mdlearn.fit(
        name, X, y, kernel="rbf", gamma=GAMMA, bias=bias, sample_weight=counts, C=C, tol=1e-11, solver="cd", **weights
    )
    assert model.certificate.converged
    G = np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    alpha, beta, m = model.dual_coef_[0], model.duals[0], counts.sum()
    z = y * (G @ alpha + model.intercept_[0])
    spread = 4.0 * weights.get("lambda1", 0.0) / m * counts * (z - counts @ z / m)
    assert y * alpha == pytest.approx(beta + weights.get("lambda2", 0.0) / m * counts - spread, abs=1e-4 * C)
    cap = C * counts
    near = 1e-4
    assert (z[beta < 1e-6 * cap] > 1 - near).all() and (z[beta > (1 - 1e-6) * cap] < 1 + near).all()
    inside = (beta > 1e-4 * cap) & (beta < (1 - 1e-4) * cap)
    assert z[inside] == pytest.approx(np.ones(inside.sum()), abs=near)
    if bias == "free":
        assert abs(alpha.sum()) < 1e-9 * np.abs(alpha).sum()
    if bias == "regularized":
        assert model.intercept_[0] == pytest.approx(alpha.sum())


def test_each_way_is_taken(way):
    X, y, _ = data(5)
    weights = {} if way[0] in ("rows", "all") else {"lambda1": 2.0, "lambda2": 0.5}
    mdlearn.fit("ldm" if weights else "svm", X, y, kernel="rbf", gamma=GAMMA, solver="cd", **weights)
    expected = {
        "rows": "SupportHessian",
        "all": "GramMajorantHessian",
        "deflated": "DeflatedHessian",
        "factored": "CholeskyOrderedHessian",
    }
    assert way[1] == [expected[way[0]]]


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_a_first_factor_without_free_rows(way, bias):
    """Beside a heavy variance all margins are nearly alike: none lies near a kink."""
    X, y, counts = data(6)
    given = {"kernel": "rbf", "gamma": 1e-7, "bias": bias, "C": 0.08, "lambda1": 58.0, "sample_weight": counts}
    exact = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-8, **given).certificate
    told = mdlearn.fit("ldm", X, y, solver="cd", tol=1e-6, **given).certificate
    assert told.converged and told.objective == pytest.approx(exact.objective, rel=1.1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_random_problems_against_interior_point_steps(way, seed):
    rng = np.random.default_rng(100 + seed)
    X, y, counts = data(seed, m=int(rng.integers(30, 80)))
    kernel = {"kernel": "poly", "degree": 2, "coef0": 1.0} if seed % 3 == 0 else {"kernel": "rbf", "gamma": GAMMA}
    arguments = {**kernel, "bias": ("none", "regularized", "free")[seed % 3 if seed % 2 else rng.integers(3)]}
    arguments["sample_weight"] = counts if seed % 2 else None
    name, weights = "svm", {"C": 10 ** rng.uniform(-2, 2)}
    if seed % 4:
        name, weights = "ldm", {**weights, "lambda1": 10 ** rng.uniform(-3, 3), "lambda2": rng.uniform(0, 2)}
    own, other = (mdlearn.fit(name, X, y, solver=s, tol=1e-8, **weights, **arguments) for s in ("cd", "interior"))
    assert own.certificate.converged
    assert own.certificate.objective == pytest.approx(other.certificate.objective, rel=3e-8)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("d, most", [(2, 300), (60, 750)])
def test_only_the_support_is_computed(monkeypatch, d, most, bias):
    """A hinge without variance asks for few rows of the Gram matrix, and its certificate is that of the whole one."""
    asked = []
    rows = KernelFeatures.cached_rows

    def watched(self):
        asked[:] = [rows(self)]
        return asked[0]

    monkeypatch.setattr(KernelFeatures, "cached_rows", watched)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, d)) + np.where(np.arange(1500) % 2, 2.5, -2.5)[:, None] * (2.0 / d) ** 0.5
    y = np.where(np.arange(1500) % 2, 1, -1)
    gamma = GAMMA * min(1.0, 6.0 / d)
    model = mdlearn.fit("svm", X, y, kernel="rbf", gamma=gamma, bias=bias, C=1.0)
    known = asked[0].index.tolist()
    assert len(known) == len(set(known)) and set(model.support_) <= set(known) and len(known) < most
    squares = (X * X).sum(axis=1)
    G = np.exp(-gamma * np.maximum(squares[:, None] + squares - 2.0 * X @ X.T, 0.0))
    whole = mdlearn.fit("svm", G, y, kernel="precomputed", bias=bias, C=1.0)
    assert whole.certificate.objective == pytest.approx(model.certificate.objective, rel=2e-6)


def rows_and_steps(monkeypatch, solve):
    """Numbers of rows of the quadratics that a fit takes greedy steps on by rows of the kernel, and all its steps."""
    sizes, taken, Box, pairs = [], [], greedy.Box, greedy.pairs

    def boxed(H, *rest):
        sizes.extend([H.place.shape[0]] if isinstance(H, KnownRows) else [])
        return Box(H, *rest)

    def counted(*given):
        taken.append(pairs(*given))
        return taken[-1]

    monkeypatch.setattr(greedy, "Box", boxed)
    monkeypatch.setattr(greedy, "pairs", counted)
    found = solve()
    monkeypatch.undo()
    return found, sizes, sum(taken)


def noisy_stripes(m=1500):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(m, 2))
    return X, np.where(np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=m) > 0, 1, -1)


def test_a_loose_tolerance_ends_with_the_first_steps_that_meet_it(monkeypatch):
    X, y = noisy_stripes()
    steps, gaps = [], []
    for tol in (1e-2, 1e-6):
        model, _, n = rows_and_steps(
            monkeypatch, lambda tol=tol: mdlearn.fit("svm", X, y, kernel="rbf", gamma=2.0, bias="free", tol=tol)
        )
        steps.append(n)
        gaps.append(model.certificate.gap)
    assert 3e-4 < gaps[0] <= 1e-2 and gaps[1] <= 1e-6
    assert steps[0] < 0.5 * steps[1]


@pytest.mark.parametrize("bias", ["free", "regularized"])
def test_the_next_point_of_a_path_leaves_rows_far_from_their_kinks_alone(monkeypatch, bias):
    """The first steps go over all rows, those from a neighbour over some; both end at the optimum."""
    X, y = noisy_stripes()
    given = {"kernel": "rbf", "gamma": 2.0, "bias": bias, "tol": 1e-9}
    path, sizes, _ = rows_and_steps(monkeypatch, lambda: mdlearn.fit_path("svm", X, y, {"C": [10.0, 20.0]}, **given))
    assert sizes[0] == 1500 and min(sizes) < 750
    K = np.exp(-2.0 * ((X[:, None] - X) ** 2).sum(axis=2))
    for C, model in zip((10.0, 20.0), path):
        u = y * np.abs(model.dual_coef_.ravel())
        z = y * (K @ u + model.intercept_[0])
        value = 0.5 * u @ K @ u + (0.5 * model.intercept_[0] ** 2 if bias == "regularized" else 0.0)
        primal = value + C * np.maximum(0.0, 1.0 - z).sum()
        assert abs(primal - (np.abs(u).sum() - value)) <= 1e-7 * primal


@pytest.mark.parametrize("bias, constant", [("none", 0.0), ("regularized", 1.0)])
@pytest.mark.parametrize("C", [1e-5, 2e-6])
def test_a_start_with_every_row_at_its_cap_and_far_from_its_kink(bias, constant, C):
    """With so small a weight all multipliers are at their caps: the optimum is known."""
    X, y = noisy_stripes(1100)
    given = {"kernel": "rbf", "gamma": 2.0, "bias": bias}
    start = mdlearn.fit("svm", X, y, C=1e-5, **given)
    model = mdlearn.fit("svm", X, y, C=C, warm_start=start, tol=1e-12, **given)
    K = np.exp(-2.0 * ((X[:, None] - X) ** 2).sum(axis=2)) + constant
    assert model.certificate.objective == pytest.approx(1100 * C - 0.5 * C**2 * y @ K @ y, rel=1e-12)
    np.testing.assert_allclose(model.dual_coef_.ravel(), C * y)


def test_classes_share_one_matrix():
    """Several classes are solved on one Gram matrix, each to its own certificate."""
    rng = np.random.default_rng(1)
    X, codes = rng.standard_normal((120, 3)), rng.integers(0, 3, 120)
    model = mdlearn.fit("ldm", X, codes, kernel="rbf", C=1.0, lambda1=20.0, lambda2=1.0, tol=1e-9)
    assert model.certificate.converged
    for k in range(3):
        alone = mdlearn.fit("ldm", X, codes == k, kernel="rbf", C=1.0, lambda1=20.0, lambda2=1.0, tol=1e-9)
        part = model.certificate.parts[k]
        assert part.objective == pytest.approx(alone.certificate.objective, rel=3e-9)


@pytest.mark.parametrize("paired", [False, True])
def test_greedy_steps_rise_and_keep_the_gradient(paired):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((30, 10))
    H, soft = A @ A.T, rng.random(30)
    low, high = -rng.random(30), rng.random(30)
    border, omega = (np.ones(30), 0.0) if paired else (rng.standard_normal(30), 0.5)
    M = H + omega * np.outer(border, border) + np.diag(soft)
    start, u = rng.standard_normal(30), np.zeros(30)
    e, value = start.copy(), 0.0
    box = greedy.Box(H, border, omega, soft, low, high, u, e, np.empty((4, 30)))
    for _ in range(40):
        (greedy.pairs if paired else greedy.doubles)(box, 1, 0.0)
        new = start @ u - 0.5 * u @ M @ u
        assert new >= value - 1e-12 and (u >= low).all() and (u <= high).all()
        value = new
        if paired:
            assert abs(u.sum()) < 1e-12
    (greedy.pairs if paired else greedy.doubles)(box, 100_000, 1e-10)
    gradient = start - M @ u
    if paired:
        assert gradient[u < high].max() - gradient[u > low].min() < 1e-8
    else:
        assert e == pytest.approx(gradient, abs=1e-9)
        assert gradient[u < high].max() < 1e-8 and gradient[u > low].min() > -1e-8


def test_two_coordinates_are_solved_at_once():
    """Of a problem of two coordinates hardly anything is left after one step, wherever the optimum lies."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        A = rng.standard_normal((2, 2)) @ np.diag([1.0, 10.0 ** rng.uniform(-4, 0)])
        H, soft, zero = A @ A.T, np.zeros(2), np.zeros(2)
        low, high = -rng.random(2), rng.random(2)
        u, e = np.zeros(2), 10.0 ** rng.uniform(-3, 1) * rng.standard_normal(2)
        box = greedy.Box(H, zero, 0.0, soft, low, high, u, e, np.empty((4, 2)))
        assert greedy.doubles(box, 3, 1e-12 * np.abs(e).max()) <= 3
        assert box.violation <= 1e-9 * np.abs(H).max() + 1e-12


def test_rows_that_are_nearly_alike():
    """A wide kernel: along all but one direction the Hessian is small, and single coordinates would crawl."""
    rng = np.random.default_rng(4)
    A, n = rng.standard_normal((200, 5)), 200
    H, start = 1.0 + 1e-4 * A @ A.T, np.where(rng.random(n) < 0.5, -1.0, 1.0)
    u, e, bound = np.zeros(n), start.copy(), np.full(n, 100.0)
    box = greedy.Box(H, np.zeros(n), 0.0, np.zeros(n), -bound, bound, u, e, np.empty((4, n)))
    count = greedy.doubles(box, 20 * n, 1e-6)
    assert count < 20 * n and box.violation <= 1e-6
    gradient = start - H @ u
    assert gradient[u < bound].max() < 1e-5 and gradient[u > -bound].min() > -1e-5


@pytest.mark.parametrize("h", [1e-300, 1e-150, 1.0, 49.0, 1e150])
@pytest.mark.parametrize("room", [0.5, 10.0])
def test_equal_rows_of_any_size(h, room):
    """The sum of their multipliers is 1 / h, or what their boxes hold; products of entries may be 0 or infinite."""
    u, e = np.zeros(3), np.ones(3)
    high = np.full(3, room / (3 * h))
    zeros = np.zeros(3)
    box = greedy.Box(np.full((3, 3), h), zeros, 0.0, zeros, zeros, high, u, e, np.empty((4, 3)))
    assert greedy.doubles(box, 10, 1e-12) <= 3
    assert h * u.sum() == pytest.approx(min(1.0, room), rel=1e-12)
    assert e == pytest.approx(np.full(3, max(0.0, 1.0 - room)), abs=1e-12)


def test_a_row_of_length_zero_goes_to_its_bound():
    H, u, e = np.diag([0.0, 2.0, 0.0]), np.zeros(3), np.array([1.0, 1.0, -1.0])
    one = np.ones(3)
    box = greedy.Box(H, 0 * one, 0.0, 0 * one, -one, one, u, e, np.empty((4, 3)))
    assert greedy.doubles(box, 10, 0.0) <= 4
    assert u.tolist() == [1.0, 0.5, -1.0]


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_a_wide_kernel_takes_a_few_rounds(bias, C):
    """Two moons of 1200 rows, kernels four times as wide as they are: rounds of working sets, no other engine."""
    rng = np.random.default_rng(5)
    t, y = np.pi * rng.random(1200), np.where(np.arange(1200) % 2 == 0, 1.0, -1.0)
    X = np.stack([np.cos(t) + 0.5 * (y < 0), y * np.sin(t)], axis=1) + 0.4 * rng.standard_normal((1200, 2))
    model = mdlearn.fit("svm", X, y, C=C, kernel="rbf", gamma=0.01, solver="cd", bias=bias)
    assert model.certificate.converged and model.n_iter <= 12


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("gamma", [0.05, 1.0])
def test_nearly_singular_blocks_take_a_few_rounds(gamma, bias):
    """C = 1e4 on a smooth kernel of two columns: the free rows outnumber the directions that the kernel has."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((1200, 2))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(1200) > 0, 1.0, -1.0)
    model = mdlearn.fit("svm", X, y, C=1e4, kernel="rbf", gamma=gamma, solver="cd", bias=bias)
    assert model.certificate.converged and model.n_iter <= 25
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    alpha = model.dual_coef_[0]
    z = y * (K @ alpha + model.intercept_[0])
    value = 0.5 * alpha @ K @ alpha + 1e4 * np.maximum(0.0, 1.0 - z).sum()
    value += 0.5 * model.intercept_[0] ** 2 if bias == "regularized" else 0.0
    assert value == pytest.approx(model.certificate.objective, rel=1e-8)


def test_greedy_steps_refuse_what_does_not_fit():
    one = np.ones(3)
    with pytest.raises(ValueError, match="square"):
        greedy.Box(np.ones((3, 2)), one, 0.0, one, one, one, one.copy(), one.copy(), np.empty((4, 3)))
    with pytest.raises(ValueError, match="one entry per row"):
        greedy.Box(np.ones((3, 3)), one, 0.0, one, one[:2], one, one.copy(), one.copy(), np.empty((4, 3)))
    index = np.array([0, 3])
    with pytest.raises(ValueError, match="out of range"):
        greedy.gather(np.ones((3, 3)), index, index, np.empty((2, 2)), 0, 2)
    with pytest.raises(ValueError, match="range of its rows"):
        greedy.gather(np.ones((3, 3)), index[:1], index[:1], np.empty((1, 1)), 0, 2)


@pytest.mark.parametrize("d", [3, 200])
def test_gram_matrix_and_its_rows(d):
    """Blocks of any size make the same matrix: symmetric to the last bit, and equal to its formula."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, d))
    features = KernelFeatures(DenseRows(X), Kernel("rbf", {"gamma": 1.0 / d}))
    drain(features.gram_rows(np.array([7, 250, 3])))
    rows = features.cached_rows().values[:3].copy()
    alpha = np.zeros(300)
    alpha[[3, 9, 250]] = 1.0, -2.0, 0.5
    from_rows = features.decision(alpha)
    G = drain(features.gram())
    expected = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / d)
    assert np.abs(G - expected).max() < 1e-13 and np.array_equal(G, G.T)
    assert np.abs(rows - G[[7, 250, 3]]).max() < 1e-13
    assert np.abs(from_rows - G @ alpha).max() < 1e-13


def test_leading_directions_bound_the_hessian_from_above():
    """G without them is between H and G, and nearly H where few directions are large."""
    X, y, counts = data(6, m=60)
    column = mdlearn.solvers.base.Column(y, counts, 3.0, 0.5, (mdlearn.forms.losses.HingeTerm(1.0),))
    G = np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    D = np.diag(counts) - np.outer(counts * y, counts * y) / counts.sum()
    H = G @ np.linalg.inv(np.eye(60) + column.kappa * D @ G)
    deflated = hessians.DeflatedHessian(G, 0.0, column)
    drain(deflated._leading(4))
    bound = drain(deflated.block(np.arange(60)))
    assert np.linalg.eigvalsh(bound - H).min() > -1e-10
    assert np.linalg.eigvalsh(bound - H).max() < 0.5 * np.linalg.eigvalsh(G - H).max()
    exact = cholesky_ordered.CholeskyOrderedHessian(G, 0.0, column)
    drain(exact.factor(np.arange(40, 60)))
    some = np.array([50, 3, 41, 20])
    assert drain(exact.block(some)) == pytest.approx(H[np.ix_(some, some)], abs=1e-11)


def test_a_matrix_by_short_products_is_mirrored_exactly():
    A = np.random.default_rng(4).standard_normal((400, 5))
    G = drain(gram_matrix_by_blocks(400, 5, lambda r, c: A[r] @ A[c].T))
    assert np.array_equal(G, G.T) and np.abs(G - A @ A.T).max() < 1e-13
