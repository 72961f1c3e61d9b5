"""CSVM, one SVM per cluster and LLSVM: the printed formulas solved by other means, their limits, files and features."""

import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from mdlearn_baselines.csvm import CSVM, ClusterSVM
from mdlearn_baselines.llsvm import LLSVM
from mdlearn_baselines.local import LocalMap
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import mdlearn
from mdlearn.extend import check_rows, memory
from mdlearn.testing import parametrize_with_checks

ALL = {CSVM: {"n_clusters": 3}, ClusterSVM: {"n_clusters": 3}, LLSVM: {"n_anchors": 10, "n_nearest": 3}}
each = pytest.mark.parametrize("objective", ALL, ids=lambda cls: cls.name)


@parametrize_with_checks(["csvm", ClusterSVM(C=20.0), LLSVM(lam=1e-5, n_anchors=4), CSVM(lam=30.0, offset=0.0)])
def test_conformance(objective, check):
    check(objective)


def sample(m=40, d=2, seed=0):
    """A noisy checkerboard and repetition counts, one of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(m) > 0, 1.0, -1.0)
    return X, y, rng.integers(0, 4, m).astype(float)


def coded(X, centers, nearest):
    """gamma(x), row by row from its definition."""
    G = np.zeros((len(X), len(centers)))
    for i, x in enumerate(X):
        away = np.array([np.sqrt(((x - c) ** 2).sum()) for c in centers])
        near = np.argsort(away, kind="stable")[:nearest]
        if nearest == 1 or away[near[0]] == 0:
            G[i, near[0]] = 1.0
        else:
            G[i, near] = (1 / away[near]) / (1 / away[near]).sum()
    return G


def local_values(X, gamma, W):
    """f(x) = sum_v gamma_v(x) (w_v . x + b_v) for W of shape (K, d + 1)."""
    return (gamma * (np.column_stack([X, np.ones(len(X))]) @ W.T)).sum(axis=1)


def best(quadratic, shape, margins, weights):
    """min quadratic(V) + sum weights_i xi_i with z_i = margins(V)_i >= 1 - xi_i and xi >= 0, by SLSQP."""
    n, m = int(np.prod(shape)), len(weights)
    J = np.column_stack([margins(unit.reshape(shape)) for unit in np.eye(n)])
    H = np.array([[quadratic((a + b).reshape(shape)) - quadratic(a.reshape(shape)) - quadratic(b.reshape(shape))
                   for a in np.eye(n)] for b in np.eye(n)])  # fmt: skip
    rows = np.hstack([J, np.eye(m)])
    found = minimize(
        lambda v: quadratic(v[:n].reshape(shape)) + weights @ v[n:],
        np.r_[np.zeros(n), np.ones(m)],
        jac=lambda v: np.r_[H @ v[:n], weights],
        bounds=[(None, None)] * n + [(0, None)] * m,
        constraints={"type": "ineq", "fun": lambda v: rows @ v - 1, "jac": lambda v: rows},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    # Where rounding ends the search, it is not called a success; the value tells.
    return found.fun, found.x[:n].reshape(shape)


def csvm(V, lam):
    """lam/2 |w|^2 + 1/2 sum_l |w_l - w|^2; V holds w_1 ... w_K and w."""
    return lam / 2 * (V[-1] ** 2).sum() + 0.5 * ((V[:-1] - V[-1]) ** 2).sum()


def clusters(V):
    return 0.5 * (V[:-1] ** 2).sum() + 0.5 * (V[-1] ** 2).sum()


def llsvm(V, lam):
    return lam / 2 * (V**2).sum()


@pytest.mark.parametrize(
    ("objective", "settings", "nearest", "quadratic", "price"),
    [
        (CSVM, {"lam": 0.3, "C": 2.0, "n_clusters": 3}, 1, partial(csvm, lam=0.3), lambda m: 2.0),
        (CSVM, {"lam": 5.0, "C": 0.1, "n_clusters": 4}, 1, partial(csvm, lam=5.0), lambda m: 0.1),
        (ClusterSVM, {"C": 2.0, "n_clusters": 3}, 1, clusters, lambda m: 2.0),
        (LLSVM, {"lam": 0.01, "n_anchors": 5, "n_nearest": 3}, 3, partial(llsvm, lam=0.01), lambda m: 1 / m),
        (LLSVM, {"lam": 0.1, "n_anchors": 4}, 4, partial(llsvm, lam=0.1), lambda m: 1 / m),
    ],
)
def test_the_optimum_of_the_printed_formula(objective, settings, nearest, quadratic, price):
    X, y, counts = sample()
    model = mdlearn.fit(objective, X, y, sample_weight=counts, tol=1e-12, **settings)
    gamma = coded(X, model.centers_, nearest)
    extra = 0 if objective is LLSVM else 1  # the common w, which the margins do not see
    shape = (len(model.centers_) + extra, 3)
    value, V = best(quadratic, shape, lambda V: y * local_values(X, gamma, V[: len(model.centers_)]),
                    counts * price(counts.sum()))  # fmt: skip
    assert model.certificate.objective == pytest.approx(value, rel=1e-7)
    assert model.certificate.lower_bound <= value * (1 + 1e-9) and model.certificate.kind == "duality gap"
    W = model.coef_[0]
    assert_allclose(W, V[: len(W)], atol=2e-3)
    assert_allclose(model.decision_function(X), local_values(X, gamma, W), atol=1e-10)
    if objective is CSVM:
        # The common w that is best for these w_l is their sum over lam + K.
        own = np.vstack([W, W.sum(axis=0) / (settings["lam"] + len(W))])
        short = np.maximum(0, 1 - y * local_values(X, gamma, W))
        held = quadratic(own) + settings["C"] * counts @ short
        assert model.certificate.objective == pytest.approx(held, rel=1e-9)


@each
def test_centres_are_means_of_their_rows(objective):
    X, y, counts = sample()
    centers = mdlearn.fit(objective, X, y, sample_weight=counts, **ALL[objective]).centers_
    nearest = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    for k, center in enumerate(centers):
        at = nearest == k
        assert_allclose(center, np.average(X[at], axis=0, weights=counts[at]), atol=1e-12)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_one_cluster_is_an_svm(bias):
    X, y, _ = sample()
    wide = np.column_stack([X, np.full(len(X), 0.5)])
    settings = {"C": 2.0, "bias": bias, "tol": 1e-12}
    for objective, own, factor in ((CSVM, {"lam": 0.5}, 3.0), (ClusterSVM, {}, 1.0)):
        model = mdlearn.fit(objective, X, y, n_clusters=1, offset=0.5, **own, **settings)
        # lam/2 |w|^2 + 1/2 |w_1 - w|^2 at its best w is 1/2 |w_1|^2 / (1 + 1/lam).
        plain = mdlearn.fit("svm", wide * np.sqrt(factor), y, **settings)
        assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-10)
        assert_allclose(model.decision_function(X), plain.decision_function(wide * np.sqrt(factor)), atol=1e-5)


def test_clusters_without_a_tie_are_svms_of_their_own():
    X, y, counts = sample(120)
    model = mdlearn.fit(ClusterSVM, X, y, sample_weight=counts, n_clusters=4, C=1.5, offset=2.0, tol=1e-12)
    wide = np.column_stack([X, np.full(len(X), 2.0)])
    nearest, total = coded(X, model.centers_, 1).argmax(axis=1), 0.0
    for k in range(4):
        at = (nearest == k) & (counts > 0)
        alone = mdlearn.fit("svm", wide[at], y[at], sample_weight=counts[at], C=1.5, bias="none", tol=1e-12)
        total += alone.certificate.objective
        assert_allclose(model.decision_function(X[at]), alone.decision_function(wide[at]), atol=1e-5)
    assert model.certificate.objective == pytest.approx(total, rel=1e-10)
    tied = mdlearn.fit(CSVM, X, y, sample_weight=counts, n_clusters=4, C=1.5, offset=2.0, lam=1e9, tol=1e-12)
    assert tied.certificate.objective == pytest.approx(total, rel=1e-6)


def test_clusters_of_one_class_get_it():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.standard_normal((30, 2)) + at for at in ([9, 9], [-9, -9], [9, -9])])
    y = np.repeat([0, 1, 0], 30)
    y[60:75] = 1
    model = mdlearn.fit(ClusterSVM, X, y, n_clusters=3)
    assert model.score(X[:60], y[:60]) == 1.0
    none = mdlearn.fit(ClusterSVM, X, y, n_clusters=3, offset=0.0)
    assert not none.coef_[..., -1].any()


def test_a_row_at_an_anchor_has_its_function_alone():
    X, y, _ = sample(60)
    model = mdlearn.fit(LLSVM, X, y, n_anchors=8, n_nearest=4)
    W, at = model.coef_[0], model.centers_
    exact = (W[:, :-1] * at).sum(axis=1) + W[:, -1]
    assert_allclose(model.decision_function(at), exact, rtol=1e-14)
    assert_allclose(model.decision_function(sp.csr_matrix(at)), exact, rtol=1e-12)
    assert_allclose(model.decision_function(at + 1e-9), exact, atol=1e-6)


@each
@pytest.mark.parametrize("k", [2, 3])
def test_sparse_rows_and_float32_make_the_same_model(objective, k):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((150, 6)) < 0.6, rng.standard_normal((150, 6)), 0.0)
    y = np.argmax(np.square(X[:, :k]) + 0.2 * rng.standard_normal((150, k)), axis=1)
    fit = partial(mdlearn.fit, objective, y=y, **ALL[objective])
    dense = fit(X=X, tol=1e-11)
    for made, tol, close in ((sp.csr_matrix(X), 1e-11, 1e-4), (X.astype(np.float32), 1e-5, 5e-2)):
        other = fit(X=made, tol=tol)
        assert other.certificate.objective == pytest.approx(dense.certificate.objective, rel=max(1e-10, 2 * tol))
        assert_allclose(other.decision_function(made), dense.decision_function(X), atol=close)
        assert other.coef_.dtype == made.dtype and other.coef_.shape == dense.coef_.shape
    assert dense.coef_.shape == (1 if k == 2 else 3, len(dense.centers_), 7)
    assert_array_equal(dense.decision_function(X[5:9]), dense.decision_function(X)[5:9].copy())


@each
def test_files(objective, tmp_path):
    X, y, _ = sample()
    model = mdlearn.fit(objective, X, y, **ALL[objective])
    path = tmp_path / "m.npz"
    model.save(path)
    again = mdlearn.load(path)
    assert_array_equal(again.decision_function(X), model.decision_function(X), strict=True)
    assert_array_equal(again.coef_, model.coef_, strict=True)
    assert_array_equal(again.centers_, model.centers_, strict=True)

    unregistered = type("Unregistered", (objective,), {"name": "unregistered"})
    mdlearn.fit(unregistered, X, y, **ALL[objective]).save(path)
    with pytest.raises(ValueError, match="it needs the objective 'unregistered' of a plugin; objective 'unreg"):
        mdlearn.load(path)


@pytest.mark.parametrize(
    "change", [{"nearest": 4}, {"nearest": 0}, {"offset": -1.0}, {"shared": np.inf}, {"centers": 3}]
)
def test_values_that_make_no_map(change):
    place = LocalMap(np.eye(3), 2, 1.0, 0.5)
    assert_array_equal(LocalMap.decoded(place.encoded()).centers, place.centers)
    with pytest.raises(ValueError, match=r"make no map|is no array"):
        LocalMap.decoded({**place.encoded(), **change})


def test_memory_is_asked_for(monkeypatch):
    X, y, _ = sample(1000, 50)
    needed = 8 * 51 * 1000 * 8
    monkeypatch.setattr(memory, "available_bytes", lambda: 2.0 * needed - 1)
    monkeypatch.setattr(memory, "NEGLIGIBLE_BYTES", 0.0)
    for A, told in ((X, "8 x 51 features of 1000 rows needs"), (sp.csr_matrix(X), "1020 features of 1000 rows needs")):
        with pytest.raises(mdlearn.InsufficientMemory, match=told):
            mdlearn.fit(LLSVM, A, y, n_anchors=20)


@each
def test_an_early_end_and_refusals(objective):
    X, y, _ = sample()
    number = objective.number
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        early = mdlearn.fit(objective, X, y, time_limit=0.0, **ALL[objective])
    assert early.centers_.shape == (ALL[objective][number], 2) and np.isfinite(early.decision_function(X)).all()
    with pytest.raises(ValueError, match=f"{number} is 41 but X has 40 distinct rows"):
        mdlearn.fit(objective, X, y, **{number: 41})
    with pytest.raises(ValueError, match=f"{number} needs to be"):
        mdlearn.fit(objective, X, y, **{number: 0})
    with pytest.raises(ValueError, match="is linear; got kernel='rbf'"):
        mdlearn.fit(objective, X, y, kernel="rbf")
    for multiclass in ("ovo", "joint"):
        with pytest.raises(ValueError, match="is not possible here"):
            mdlearn.fit(objective, X, y, multiclass=multiclass)


def test_defaults():
    X, y, _ = sample()
    X[1] = X[0]
    assert mdlearn.fit(LLSVM, X, y).params == {"lam": 1e-3, "n_anchors": 39, "n_nearest": 8, "offset": 1.0}
    assert mdlearn.fit(CSVM, X, y).params == {"lam": 1.0, "C": 1.0, "n_clusters": 10, "offset": 1.0}
    assert mdlearn.fit(ClusterSVM, X, y).params == {"C": 1.0, "n_clusters": 10, "offset": 1.0}
    for name in ("lam", "offset"):
        with pytest.raises(ValueError, match=f"{name} needs to be"):
            mdlearn.fit(CSVM, X, y, **{name: -1.0})
    with pytest.raises(ValueError, match="lam needs to be"):
        mdlearn.fit(LLSVM, X, y, lam=0.0)


def test_features_of_both_kinds_of_rows():
    X, _, _ = sample(30)
    centers = X[:5] + 0.1
    for nearest, shared in ((1, 0.0), (1, 0.7), (3, 0.0)):
        place = LocalMap(centers, nearest, 2.0, shared)
        wide = np.column_stack([X, np.full(30, 2.0)])
        blocks = np.column_stack([coded(X, centers, nearest), np.full(30, shared)][: 2 if shared else 1])
        whole = (blocks[:, :, None] * wide[:, None, :]).reshape(30, -1)
        for A in (check_rows(X), check_rows(sp.csr_matrix(X))):
            assert_allclose(place.checked(A).block(slice(None)), whole, atol=1e-13)
            assert place.width == whole.shape[1]
