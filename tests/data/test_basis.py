"""Kernel columns as explicit features: which rows make the basis, weights, forms of the rows, files, and memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference import gram

import mdlearn
from mdlearn.data.features import basis as module
from mdlearn.data.features.basis import BasisColumns
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows

TIGHT = {"tol": 1e-12}


def sample(m=36, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((m, d)), 2)
    y = np.where(X[:, 0] + 0.6 * rng.standard_normal(m) > 0.1, 1, -1)
    return X, y


def repeated(seed=1):
    """Rows with weights 0 ... 3, and the same with every row as often as its weight says."""
    X, y = sample()
    w = np.random.default_rng(seed).integers(0, 4, 36)
    rows = np.repeat(np.arange(36), w)
    return X, y, w, rows


@pytest.mark.parametrize("scaling", [None, "max_diag"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("basis", ["all", "cholesky", "index", "euclidean"])
def test_weights_are_repetitions(basis, kernel, scaling):
    if basis == "euclidean" and kernel == "rbf":
        return
    X, y, w, rows = repeated()
    settings = {"kernel": kernel, "c_scaling": scaling, "C": 1e-2, **TIGHT}
    settings |= {"gamma": 0.4} if kernel == "rbf" else {}
    some = np.array([0, 3, 4, 10, 11, 12, 20])
    given, copies = (some, np.flatnonzero(np.isin(rows, some))) if basis == "index" else (basis, basis)
    a = mdlearn.fit("uldm", X, y, sample_weight=w, basis=given, **settings)
    b = mdlearn.fit("uldm", X[rows], y[rows], basis=copies, **settings)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-9)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-11)
    if basis in ("all", "index"):
        # Plain columns, each once whatever its weight, are another model: the test would see them.
        plain = mdlearn.fit("uldm", X, y, sample_weight=np.minimum(w, 1), basis=given, **settings)
        assert np.abs(plain.decision_function(X) - a.decision_function(X)).max() > 1e-3


@pytest.mark.parametrize("reduced", ["index", 9])
def test_reduced_lsvm_counts_weights_as_repetitions(reduced):
    X, y, w, rows = repeated()
    some = np.array([0, 3, 4, 10, 11, 12, 20])
    given, copies = (some, np.flatnonzero(np.isin(rows, some))) if reduced == "index" else (reduced, reduced)
    settings = {"kernel": "rbf", "gamma": 0.4, "nu": 2.0, **TIGHT}
    a = mdlearn.fit("lsvm", X, y, sample_weight=w, reduced=given, **settings)
    b = mdlearn.fit("lsvm", X[rows], y[rows], reduced=copies, **settings)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-7)
    mixed = np.random.default_rng(2).permutation(rows)
    c = mdlearn.fit("lsvm", X[mixed], y[mixed], reduced=9, **settings)
    if reduced == 9:
        np.testing.assert_allclose(c.decision_function(X), a.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_reduced_lsvm_is_the_linear_machine_on_the_columns(bias):
    X, y = sample(60)
    model = mdlearn.fit("lsvm", X, y, kernel="rbf", gamma=0.6, reduced=12, nu=5.0, bias=bias, **TIGHT)
    A = np.asarray(gram(X, X[model.basis_indices_], "rbf", 0.6, dtype=np.float64))
    linear = mdlearn.fit("lsvm", A, y, nu=5.0, bias=bias, **TIGHT)
    assert len(set(model.basis_indices_)) == 12
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(A), atol=1e-7)
    assert model.certificate.objective == pytest.approx(linear.certificate.objective, rel=1e-11)
    np.testing.assert_allclose(model.dual_coef_[0, model.basis_indices_], linear.coef_[0], atol=1e-7)
    other = mdlearn.fit("lsvm", X, y, kernel="rbf", gamma=0.6, reduced=12, nu=5.0, bias=bias, random_state=1)
    assert set(other.basis_indices_) != set(model.basis_indices_)


def test_cholesky_takes_the_farthest_row_next():
    X, y = sample(30)
    X = np.vstack([X, X[:5]])  # repeated rows are no new directions
    y = np.append(y, y[:5])
    model = mdlearn.fit("uldm", X, y, kernel="rbf", gamma=0.1, basis="cholesky", basis_tol=1e-3)
    G = np.asarray(gram(X, X, "rbf", 0.1, dtype=np.float64))
    chosen = []
    for p in model.basis_indices_:
        left = distances(G, chosen)
        assert left[p] == pytest.approx(left.max(), rel=1e-9) and left[p] > 1e-3
        chosen.append(p)
    assert distances(G, chosen).max() <= 1e-3 * (1 + 1e-9) and 3 < len(chosen) < 30
    order = np.random.default_rng(0).permutation(35)
    other = mdlearn.fit("uldm", X[order], y[order], kernel="rbf", gamma=0.1, basis="cholesky", basis_tol=1e-3)
    assert np.array_equal(X[order][other.basis_indices_], X[model.basis_indices_])


def distances(G, chosen):
    """Squared distances in function space from the span of some rows."""
    if not chosen:
        return np.diagonal(G).copy()
    B = G[chosen]
    return np.diagonal(G) - np.einsum("ij,ij->j", B, np.linalg.solve(B[:, chosen], B))


@pytest.mark.parametrize("settings", [{"basis_tol": 1.0}, {"kernel": "linear"}])
def test_cholesky_has_at_least_one_row(settings):
    """The largest k(x, x) is not above itself; a kernel of zeros leaves the bias alone."""
    X, y = sample()
    X = np.zeros_like(X) if "kernel" in settings else X
    model = mdlearn.fit("uldm", X, y, basis="cholesky", C=1e-4, **TIGHT, **{"kernel": "rbf", **settings})
    assert model.basis_indices_.shape == (1,) and model.certificate.converged
    if "kernel" in settings:
        h = np.mean(y)
        np.testing.assert_allclose(model.decision_function(X), h / (1e-4 + 1.0 - h * h), rtol=1e-9)


def test_cholesky_to_rounding_is_the_rank():
    X, y = sample(40)
    model = mdlearn.fit("uldm", X, y, basis="cholesky", basis_tol=0)
    assert len(model.basis_indices_) == 3 == np.linalg.matrix_rank(X)
    poly = mdlearn.fit("uldm", X, y, basis="cholesky", basis_tol=0, kernel="poly", degree=2, coef0=1.0)
    assert len(poly.basis_indices_) == 10  # monomials of three variables up to degree 2


@pytest.mark.parametrize("basis", ["all", "cholesky", [2, 5, 17]])
def test_forms_of_kernels_and_rows(basis):
    X, y = sample()
    settings = {"basis": basis, "C": 1e-3, **TIGHT}
    rbf = mdlearn.fit("uldm", X, y, kernel="rbf", gamma=0.5, **settings)
    f = rbf.decision_function(X)
    G = np.asarray(gram(X, X, "rbf", 0.5, dtype=np.float64))
    close = {"atol": 1e-6 * np.abs(f).max()}
    if basis != "cholesky":  # its order of equally far rows is that of the rows, which a Gram matrix does not have
        given = mdlearn.fit("uldm", G, y, kernel="precomputed", **settings)
        np.testing.assert_allclose(given.decision_function(G), f, **close)
    own = mdlearn.fit(
        "uldm", X, y, kernel=lambda A, B: np.asarray(gram(A, B, "rbf", 0.5, dtype=np.float64)), **settings
    )
    np.testing.assert_allclose(own.decision_function(X), f, **close)
    sparse = mdlearn.fit("uldm", sp.csr_matrix(X), y, kernel="rbf", gamma=0.5, **settings)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X)), f, **close)
    assert np.array_equal(sparse.basis_indices_, rbf.basis_indices_)
    small = mdlearn.fit("uldm", X.astype(np.float32), y, kernel="rbf", gamma=0.5, basis=basis, C=1e-3)
    assert small.dual_coef_.dtype == np.float32 and small.certificate.converged
    np.testing.assert_allclose(small.decision_function(X.astype(np.float32)), f, atol=1e-2 * np.abs(f).max())
    used = np.zeros(36, dtype=bool)
    used[rbf.basis_indices_] = True
    assert not rbf.dual_coef_[0, ~used].any()
    np.testing.assert_allclose(G @ rbf.dual_coef_[0] + rbf.intercept_[0], f, rtol=1e-9, atol=1e-12)


def test_linear_kernel_keeps_w():
    X, y = sample()
    model = mdlearn.fit("uldm", X, y, basis=[0, 4, 9, 30], **TIGHT)
    np.testing.assert_allclose(model.coef_[0], model.dual_coef_[0] @ X, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_normalized_margins_are_those_of_the_function(kernel):
    """Divided by the norm in function space, not by the length of the coefficients."""
    X, y = sample()
    model = mdlearn.fit("uldm", X, y, kernel=kernel, basis="all", C=1e-3)
    G = X @ X.T if kernel == "linear" else np.asarray(gram(X, X, "rbf", model.params["gamma"], dtype=np.float64))
    alpha = model.dual_coef_[0]
    want = model.margins(X, y) / np.sqrt(alpha @ G @ alpha)
    np.testing.assert_allclose(model.margins(X, y, normalized=True), want, rtol=1e-7)


def test_indices_are_those_of_the_caller():
    X, y = sample()
    labels = np.where(X[:, 1] > 0.4, 2, (y + 1) // 2)
    w = np.ones(36)
    w[[1, 7]] = 0
    wanted = np.array([30, 1, 2, 7, 8, 9, 35, 12])
    model = mdlearn.fit("uldm", X, labels, kernel="rbf", basis=wanted, sample_weight=w)
    for p, pair in enumerate([(0, 1), (0, 2), (1, 2)]):
        kept = [i for i in wanted if w[i] > 0 and labels[i] in pair]
        assert np.array_equal(model.basis_indices_[p], kept)
        assert set(np.flatnonzero(model.dual_coef_[p])) <= set(kept)
    rest = mdlearn.fit("uldm", X, labels, kernel="rbf", basis=wanted, sample_weight=w, multiclass="ovr")
    assert np.array_equal(rest.basis_indices_, [30, 2, 8, 9, 35, 12])


@pytest.mark.parametrize(
    "bad, error, match",
    [
        ([0, 1, 1], ValueError, "1 comes more than once"),
        ([0, 36], ValueError, "row 36, but X has 36 rows"),
        ([-1, 2], ValueError, "got -1"),
        ([0.0, 1.0], TypeError, "float64"),
        ([True, False], TypeError, "bool"),
        ([], (TypeError, ValueError), "one-dimensional"),
        ([[0, 1]], ValueError, r"shape \(1, 2\)"),
        ([5], ValueError, "no row of positive weight"),
    ],
)
def test_wrong_indices(bad, error, match):
    X, y = sample()
    w = np.ones(36)
    w[5] = 0
    for objective, name in (("uldm", "basis"), ("lsvm", "reduced")):
        with pytest.raises(error, match=match) as caught:
            mdlearn.fit(objective, X, y, kernel="rbf", sample_weight=w, **{name: bad})
        assert name in str(caught.value)
    for wrong in (0, -3, 37):
        with pytest.raises(ValueError, match="reduced"):
            mdlearn.fit("lsvm", X, y, reduced=wrong)
    for strange in (2.5, "all", True):
        with pytest.raises(TypeError, match="reduced"):
            mdlearn.fit("lsvm", X, y, reduced=strange)


def test_files(tmp_path):
    X, y = sample()
    labels = np.where(X[:, 1] > 0.4, 2, (y + 1) // 2)
    for settings in (
        {"kernel": "rbf", "basis": np.arange(12, dtype=np.int32)},
        {"kernel": "rbf", "basis": "cholesky", "multiclass": "ovr"},
        {"kernel": "linear", "basis": "all"},
        {"kernel": "linear", "C": 0.0},
        {"kernel": "linear", "c_scaling": "max_diag"},
    ):
        model = mdlearn.fit("uldm", X, labels, **settings)
        model.save(tmp_path / "model.npz")
        loaded = mdlearn.load(tmp_path / "model.npz")
        assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
        assert repr(loaded.params) == repr(model.params)
        assert hasattr(loaded, "basis_indices_") == hasattr(model, "basis_indices_")
        if hasattr(model, "basis_indices_"):
            told, kept = model.basis_indices_, loaded.basis_indices_
            assert type(told) is type(kept) and len(told) == len(kept)
            assert all(np.array_equal(a, b) and a.dtype == np.intp for a, b in zip(kept, told))
        if isinstance(settings.get("basis"), np.ndarray):
            assert loaded.params["basis"].dtype == np.int64
    two = mdlearn.fit("lsvm", X, y, kernel="rbf", reduced=[5, 6])
    two.save(tmp_path / "model.npz")
    assert np.array_equal(mdlearn.load(tmp_path / "model.npz").params["reduced"], [5, 6])


def test_models_without_a_basis_say_so():
    X, y = sample()
    model = mdlearn.fit("uldm", X, y)
    with pytest.raises(AttributeError, match=r"uldm.*no attribute 'basis_indices_'"):
        _ = model.basis_indices_
    kernel = mdlearn.fit("uldm", X, y, kernel="rbf")
    with pytest.raises(AttributeError, match="linear kernel only"):
        _ = kernel.coef_
    with pytest.raises(AttributeError, match="it has basis_indices_"):
        _ = kernel.no_such_thing


@pytest.mark.parametrize("C", [1e-2, 1e-10])
def test_columns_that_are_not_kept(monkeypatch, C):
    X, y = sample(300)
    kept = mdlearn.fit("uldm", X, y, kernel="rbf", C=C, tol=1e-9)
    monkeypatch.setattr(module, "COPY_BYTES", 1000.0)
    for solver in ("direct", "cd"):
        if solver == "cd" and C < 1e-3:
            continue
        model = mdlearn.fit("uldm", X, y, kernel="rbf", C=C, solver=solver, tol=1e-9)
        f = kept.decision_function(X)
        np.testing.assert_allclose(model.decision_function(X), f, atol=1e-4 * np.abs(f).max())
        assert model.certificate.converged


def test_blocks_are_kernel_values():
    X, _ = sample(300)
    columns = BasisColumns(DenseRows(X), Kernel("rbf", {"gamma": 0.5}), np.arange(0, 300, 7))
    G = np.asarray(gram(X, X[::7], "rbf", 0.5, dtype=np.float64))
    assert not columns.complete
    for rows in (slice(10, 90), np.array([299, 3, 3, 64]), slice(None)):
        np.testing.assert_allclose(columns.block(rows), G[rows], atol=1e-14)
    np.testing.assert_allclose(columns.adjoint(X[:, 0]), G.T @ X[:, 0], atol=1e-12)
    np.testing.assert_allclose(columns.inner(columns), G @ G.T, atol=1e-12)
    assert columns.shape == (300, 43) and columns.complete


def test_a_fit_that_ends_before_any_work():
    X, y = sample()

    def never(A, B):
        raise AssertionError("the kernel was called")

    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        model = mdlearn.fit("uldm", X, y, kernel=never, time_limit=0)
    assert model.certificate.kind == "none" and model.certificate.objective == 0.0 and not model.dual_coef_.any()


def test_stochastic_engines_refuse_columns():
    X, y = sample()
    with pytest.raises(ValueError, match="kernel columns and landmark features"):
        mdlearn.fit("uldm", X, y, kernel="rbf", solver="asgd")


@pytest.mark.parametrize("classes", [2, 3])
def test_a_basis_is_chosen_until_the_deadline_only(classes, clock, monkeypatch):
    """Also that of a later pair of classes."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((240, 3)), np.arange(240) % classes
    asked, block = [], Kernel.block

    def slow(self, A, B):
        asked.append(1)
        clock.sleep(1.0)
        return block(self, A, B)

    given = {"kernel": "rbf", "gamma": 1.0, "basis": "cholesky", "multiclass": "ovo" if classes > 2 else "auto"}
    whole = mdlearn.fit("uldm", X, y, **given)
    sizes = [len(one) for one in (whole.basis_indices_ if classes > 2 else [whole.basis_indices_])]
    assert min(sizes) > 60
    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "block", slow)
        limits = [30.5] if classes == 2 else [30.5, sizes[0] + 60.5]
        for limit in limits:
            asked.clear()
            with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
                model = mdlearn.fit("uldm", X, y, time_limit=limit, **given)
            assert len(asked) <= limit + 2
    assert np.isfinite(model.certificate.objective) and np.isfinite(model.decision_function(X)).all()
