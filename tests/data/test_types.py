"""Types and layouts of X: float32 in gives float32 out, certified; any layout gives the same answer."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from judging import assert_optimal, quiet_fit, recomputed
from layouts import F32, F64, LAYOUTS, MATRICES, arrays, dense, rows, sparse_rows

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.rounding import rounded, to_type
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm


def product(A, B):
    return np.asarray(A) @ np.asarray(B).T + 1.0


# In float32, both values of C are larger than in float64.
LDM = {"C": 0.3, "lambda1": 1.0, "lambda2": 0.25}
SVM = {"C": 0.1}
MANY, FEW = rows(2100, 4), rows(90, 4)
ENGINES = {
    "interior rows": ("ldm", MANY, {**LDM, "solver": "interior", "bias": "regularized"}),
    "interior free": ("svm", MANY, {**SVM, "solver": "interior", "bias": "free"}),
    "interior gram": ("ldm", FEW, {**LDM, "solver": "interior", "bias": "free", "kernel": "rbf"}),
    "cd rows": ("svm", MANY, {**SVM, "solver": "cd", "bias": "none"}),
    "cd whitened": ("ldm", MANY, {**LDM, "solver": "cd", "bias": "regularized"}),
    "cd gram": ("ldm", FEW, {**LDM, "solver": "cd", "bias": "regularized", "kernel": "rbf"}),
    "cd poly": ("svm", FEW, {**SVM, "solver": "cd", "bias": "none", "kernel": "poly", "degree": 2}),
    "cd callable": ("ldm", FEW, {**LDM, "solver": "cd", "bias": "none", "kernel": product}),
    "cd csr": ("ldm", sparse_rows(), {**LDM, "solver": "cd", "bias": "regularized"}),
    "interior csr": ("ldm", sparse_rows(), {**LDM, "solver": "interior", "bias": "free"}),
    "asgd rows": ("ldm", MANY, {**LDM, "solver": "asgd", "bias": "regularized"}),
    "sgd csr": ("ldm", sparse_rows(), {**LDM, "solver": "sgd", "bias": "none"}),
}


# ---------------------------------------------------------------- float32 in, float32 out


@pytest.mark.parametrize("name", ENGINES)
def test_float32_in_float32_out(name):
    objective, (X, y), settings = ENGINES[name]
    single = quiet_fit(objective, X, y, **settings)
    double = quiet_fit(objective, X.astype(F64), y, **settings)
    assert {a.dtype for a in arrays(single)} == {F32} and {a.dtype for a in arrays(double)} == {F64}
    assert single.certificate.objective == pytest.approx(double.certificate.objective, rel=1e-5)
    assert single.decision_function(X[:9]).dtype == F64
    # The certificate is that of the rounded coefficients, to the last digits of float64.
    held, rounding = recomputed(single, dense(X).astype(F64), y, settings)
    assert abs(single.certificate.objective - held) <= 1e-13 * abs(held) + rounding
    assert (single.duals >= 0).all() and (single.duals.astype(F64) <= settings["C"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ENGINES if "sgd" not in name])
def test_the_certificate_of_float32_is_true(name):
    objective, (X, y), settings = ENGINES[name]
    X = X[:300]
    labels = np.where(y[:300] == 1, 1.0, -1.0)
    model = mdlearn.fit(objective, X, labels, **settings)
    assert_optimal(model, dense(X).astype(F64), labels, settings, relative=1.1e-6)


@pytest.mark.parametrize("name", [name for name in ENGINES if "csr" not in name])
def test_float32_decision_values_are_sums_in_float64(name):
    objective, (X, y), settings = ENGINES[name]
    model = quiet_fit(objective, X, y, **settings)
    fresh = (X[:40] + 1.0).astype(F32)
    # The same model in float64 gives the same values: nothing was added up in float32.
    np.testing.assert_allclose(
        model.decision_function(fresh), model.decision_function(fresh.astype(F64)), rtol=1e-13, atol=1e-13
    )
    if "kernel" not in settings:
        f = fresh.astype(F64) @ model.coef_[0].astype(F64) + float(model.intercept_[0])
        np.testing.assert_allclose(model.decision_function(fresh), f, rtol=1e-13, atol=1e-13)
        alpha = model.dual_coef_[0].astype(F64) @ (dense(X).astype(F64) @ fresh.T.astype(F64))
        size = np.abs(model.dual_coef_[0].astype(F64)) @ np.abs(dense(X).astype(F64) @ fresh.T.astype(F64))
        assert (np.abs(alpha + float(model.intercept_[0]) - f) <= 1e-6 * size + 1e-6).all()


@pytest.mark.parametrize(("solver", "C"), [("interior", 1.0), ("cd", 1.0), ("interior", np.inf)])
def test_float32_gram_matrix(solver, C):
    """Products in float32 are neither exactly symmetric nor exactly positive semidefinite."""
    X, _ = rows(80, 3, 5)
    y = np.where((X - 3.0).sum(axis=1) > 0, 1, 0)
    X = (X + 0.5 * (2 * y - 1)[:, None]).astype(F32)
    G = np.array([[np.float32(a @ b) for b in X] for a in X])
    G[0, 1] = np.nextafter(G[0, 1], np.float32(np.inf))
    assert G.dtype == F32 and (G != G.T).any() and np.linalg.eigvalsh(G.astype(F64))[0] < 0
    model = quiet_fit("svm", G, y, kernel="precomputed", solver=solver, C=C, tol=1e-5)
    exact = mdlearn.fit("svm", X.astype(F64), y, C=C)
    assert {a.dtype for a in arrays(model)} == {F32}
    certificate = model.certificate
    # What float32 has taken from the matrix is part of the gap.
    assert certificate.lower_bound <= exact.certificate.objective <= certificate.objective * (1 + 1e-9)
    assert certificate.objective == pytest.approx(exact.certificate.objective, rel=2e-3) and certificate.gap < 2e-3
    alpha = model.dual_coef_[0].astype(F64)
    np.testing.assert_allclose(
        model.decision_function(G), G.astype(F64) @ alpha + float(model.intercept_[0]), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [np.inf, 1e7])
def test_rounded_coefficients_keep_the_margins(C, kernel):
    X, _ = rows(60, 5, 1)
    y = np.where((X - 3.0).sum(axis=1) > 0, 1, 0)
    X = (X + 0.2 * (2 * y - 1)[:, None]).astype(F32)
    # Where the margins can all be met, C = 1e7 asks for them too: of the value at w = 0 the objective is a trace.
    model = mdlearn.fit("svm", X, y, C=C, kernel=kernel, tol=1e-6 if C == np.inf else 1e-10)
    assert model.margins(X, y).min() >= 1.0
    double = mdlearn.fit("svm", X.astype(F64), y, C=np.inf, kernel=kernel, tol=1e-10)
    assert model.certificate.objective == pytest.approx(double.certificate.objective, rel=1e-5)
    if kernel == "linear":
        square = float(np.square(np.append(model.coef_[0], model.intercept_).astype(F64)).sum())
        assert model.certificate.objective == pytest.approx(0.5 * square, rel=1e-14)


@pytest.mark.parametrize("name", ["interior rows", "cd whitened", "cd csr", "cd gram"])
def test_a_gap_that_float32_cannot_hold(name):
    """The fit ends not much later than in float64, with its true gap and the warning."""
    objective, (X, y), settings = ENGINES[name]
    with pytest.warns(mdlearn.ConvergenceWarning, match="rounding allows no better.*float64"):
        single = mdlearn.fit(objective, X, y, tol=1e-13, **settings)
    double = quiet_fit(objective, X.astype(F64), y, tol=1e-13, **settings)
    assert 1e-13 < single.certificate.gap < 1e-6 and not single.certificate.converged
    assert single.n_iter <= 2 * double.n_iter
    assert single.certificate.objective == pytest.approx(double.certificate.objective, rel=1e-6)


def test_rounding_of_numbers():
    values = np.array([0.1, -0.1, 1e300, -1e300, 1e-300, 0.0, 3.0])
    near, inner = to_type(values, F32), to_type(values, F32, towards_zero=True)
    largest = np.finfo(F32).max
    np.testing.assert_array_equal(near, np.array([0.1, -0.1, largest, -largest, 0.0, 0.0, 3.0], F32))
    assert (np.abs(inner.astype(F64)) <= np.abs(values)).all() and (np.sign(inner) * np.sign(values) >= 0).all()
    np.testing.assert_allclose(inner[[0, 1, 6]], values[[0, 1, 6]], rtol=1.2e-7)
    assert to_type(values, F64) is values


def test_dual_coefficients_grow_with_rounded_coefficients():
    """Coefficients that rounding to float32 made longer left them behind: they missed 0.4 % of the largest."""
    X = (1e3 * np.random.default_rng(1).standard_normal((10, 30))).astype(np.float32)
    model = mdlearn.fit("svm", X, np.arange(10) % 2, C=100, solver="cd", tol=1e-2)
    made = model.dual_coef_.astype(float) @ X.astype(float)
    assert np.abs(made - model.coef_).max() <= 1e-6 * np.abs(model.coef_).max()


def test_coefficients_beyond_float32_become_its_largest_number():
    X = DenseRows(np.array([[1e-3], [-1e-3]], F32))
    column = Column(np.array([1.0, -1.0]), np.ones(2), 0.0, 0.0, (HingeTerm(1.0),))
    form = MarginForm(LinearFeatures(X), (column,), "none")
    objective, coef, _, _ = rounded(form, column, 0.0, np.array([1e40]), 0.0)
    assert coef[0] == np.finfo(F32).max and objective == 0.5 * coef[0] ** 2


def test_more_than_two_classes_and_saving(tmp_path):
    X, y = rows(150, 4, 3, classes=3)
    for kernel in ("linear", "rbf"):
        model = mdlearn.fit("ldm", X, y, kernel=kernel, class_weight="balanced")
        assert {a.dtype for a in arrays(model)} == {F32} and model.dual_coef_.shape == (3, 150)
        model.save(tmp_path / "m.npz")
        again = mdlearn.load(tmp_path / "m.npz")
        assert [a.dtype for a in arrays(again)] == [a.dtype for a in arrays(model)]
        assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def test_dropped_rows_and_the_zero_model():
    X, y = rows(120, 3, 4)
    weight = np.arange(120) % 3
    model = mdlearn.fit("svm", X, y, sample_weight=weight)
    plain = mdlearn.fit("svm", X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    assert {a.dtype for a in arrays(model)} == {F32} and (model.dual_coef_[0, weight == 0] == 0).all()
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    nothing = mdlearn.fit("svm", X, y, C=0.0)
    assert nothing.coef_.dtype == F32 and not nothing.coef_.any() and nothing.certificate.objective == 0.0


# ---------------------------------------------------------------- layouts


EXACT = {name: case for name, case in ENGINES.items() if "csr" not in name}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", EXACT)
def test_layouts_of_dense_rows(name, layout, tmp_path):
    objective, (X, y), settings = EXACT[name]
    X = X.astype(F64)
    other = LAYOUTS[layout](X, tmp_path)
    if isinstance(other, np.ndarray):
        np.testing.assert_array_equal(other, X)
    plain = quiet_fit(objective, X, y, tol=1e-12, **settings)
    same = quiet_fit(objective, other, y, tol=1e-12, **settings)
    assert plain.n_iter == same.n_iter or plain.certificate.gap <= 1e-11
    for a, b in zip(arrays(plain), arrays(same)):
        # Multipliers of rows on a kink need not be unique; coefficients are.
        if a.shape != plain.duals.shape or "gram" in name:
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-10)
    np.testing.assert_allclose(same.decision_function(other), plain.decision_function(X), rtol=0, atol=1e-10)
    assert {a.dtype for a in arrays(same)} == {F64}


@pytest.mark.slow
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("list", "matrix")])
@pytest.mark.parametrize("name", ["interior rows", "cd rows", "asgd rows", "cd gram"])
def test_layouts_of_float32_rows(name, layout, tmp_path):
    objective, (X, y), settings = ENGINES[name]
    plain = quiet_fit(objective, X, y, tol=1e-9, **settings)
    same = quiet_fit(objective, LAYOUTS[layout](X, tmp_path), y, tol=1e-9, **settings)
    assert {a.dtype for a in arrays(same)} == {F32}
    np.testing.assert_allclose(same.decision_function(X), plain.decision_function(X), rtol=0, atol=1e-5)
    assert same.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-8)


@pytest.mark.parametrize("kind", [np.float16, np.longdouble, np.int8, np.uint32, np.int64, bool, object])
def test_other_numbers_become_float64(kind):
    rng = np.random.default_rng(6)
    X, y = rng.integers(0, 2, (80, 5)), rng.integers(0, 2, 80)
    model = mdlearn.fit("ldm", X.astype(kind), y, tol=1e-10)
    assert {a.dtype for a in arrays(model)} == {F64}
    np.testing.assert_array_equal(model.coef_, mdlearn.fit("ldm", X.astype(F64), y, tol=1e-10).coef_)


@pytest.mark.extras
def test_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y = rows(80, 3, 7)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = mdlearn.fit("ldm", frame, y)
    assert {a.dtype for a in arrays(model)} == {F32} and list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(model.coef_, mdlearn.fit("ldm", X, y).coef_, rtol=1e-6)
    mixed = mdlearn.fit("ldm", frame.astype({"b": F64}), y)
    assert mixed.coef_.dtype == F64
    np.testing.assert_allclose(mixed.coef_, mdlearn.fit("ldm", X.astype(F64), y).coef_, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("layout", MATRICES)
@pytest.mark.parametrize("name", [name for name in ENGINES if "csr" in name])
def test_layouts_of_sparse_rows(name, layout, tmp_path):
    objective, (A, y), settings = ENGINES[name]
    A = A.astype(F64)
    plain = quiet_fit(objective, A, y, tol=1e-12, **settings)
    same = quiet_fit(objective, MATRICES[layout](A, tmp_path), y, tol=1e-12, **settings)
    # Dense rows go another way: both points are as exact as the square root of their gap.
    close = 1e-6 if layout == "dense" and "cd" in name else 1e-10
    np.testing.assert_allclose(same.coef_, plain.coef_, rtol=0, atol=close)
    np.testing.assert_allclose(same.intercept_, plain.intercept_, rtol=0, atol=close)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [name for name in MATRICES if name != "dense"])
def test_layouts_of_sparse_float32_rows(layout, tmp_path):
    A, y = sparse_rows()
    model = mdlearn.fit("ldm", MATRICES[layout](A, tmp_path), y, solver="cd")
    assert {a.dtype for a in arrays(model)} == {F32}
    np.testing.assert_allclose(model.coef_, mdlearn.fit("ldm", A, y, solver="cd").coef_, atol=1e-6)


def test_kernels_of_sparse_rows_of_both_types():
    A, y = sparse_rows(120, 10)
    for kernel in ("rbf", "poly"):
        single, double = (mdlearn.fit("ldm", A.astype(t), y, kernel=kernel, tol=1e-8) for t in (F32, F64))
        assert single.dual_coef_.dtype == F32
        np.testing.assert_allclose(single.decision_function(A), double.decision_function(A), atol=1e-4)
        np.testing.assert_allclose(single.decision_function(A), single.decision_function(A.toarray()), atol=1e-12)
        model = mdlearn.fit("ldm", A.toarray(), y, kernel=kernel)
        np.testing.assert_allclose(model.decision_function(A), model.decision_function(A.toarray()), atol=1e-12)


@pytest.mark.parametrize("change", ["indices", "negative", "indptr"])
def test_indices_that_do_not_fit_are_refused(change):
    A, y = sparse_rows()
    if change == "indptr":
        A.indptr[5] = A.indptr[6] + 1
    else:
        A.indices[7] = -1 if change == "negative" else A.shape[1]
    with pytest.raises(ValueError, match="indices do not fit its shape"):
        mdlearn.fit("svm", A, y)


@pytest.mark.parametrize("name", ENGINES)
def test_the_callers_arrays_are_left_alone(name):
    objective, (X, y), settings = ENGINES[name]
    weight = np.linspace(0.5, 2.0, len(y))
    given = [X.copy(), y.copy(), weight.copy()]
    parts = [given[0].data, given[0].indices, given[0].indptr] if sp.issparse(X) else [given[0]]
    for array in (*parts, given[1], given[2]):
        array.flags.writeable = False
    model = quiet_fit(objective, given[0], given[1], sample_weight=given[2], **settings)
    model.margins(given[0], given[1])
    assert ((given[0] != X).nnz == 0) if sp.issparse(X) else np.array_equal(given[0], X)
    assert np.array_equal(given[1], y) and np.array_equal(given[2], weight)
    # Nor does the model change when the caller's arrays do.
    before = model.decision_function(X)
    for array in parts[:1]:
        array.flags.writeable = True
        array[:] = 0
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(4))
def test_a_free_intercept_suits_coefficients_as_they_are_rounded(seed, kernel):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 7)).astype(np.float32)
    y = np.where(X[:, 0] + 0.1 * rng.standard_normal(40) > 0, 1, -1)
    model = mdlearn.fit("svm", X, y, kernel=kernel, C=30.0, bias="free", tol=1e-5)
    f = model.decision_function(X) - float(model.intercept_[0])
    ridge = model.certificate.objective - 30.0 * np.maximum(0, 1 - y * (f + float(model.intercept_[0]))).sum()
    # The hinges' sum is least at one of their kinks.
    best = min(np.maximum(0, 1 - y * (f + np.float32(b))).sum() for b in y - f)
    assert model.certificate.objective <= (ridge + 30.0 * best) * (1 + 1e-8)
