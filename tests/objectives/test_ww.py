"""The joint problem of Weston and Watkins, against its printed formula (MDLM paper, eq. 2.15)."""

import numpy as np
import pytest
import scipy.sparse as sp
import threadpoolctl
from reference import optimum

import mdlearn
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.rows.class_contrasts import class_contrasts
from mdlearn.errors import InsufficientMemory


def sample(k=3, m=40, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.argmax(X @ rng.standard_normal((d, k)) + rng.standard_normal((m, k)), axis=1)
    y[:k] = np.arange(k)
    counts = rng.integers(0, 4, m)
    counts[:k] = 1
    return X, y, counts


def printed(X, y, counts, C, W, b, penalised):
    """C sum_i c_i sum_(k != y_i) xi_i^k + 1/2 sum W^2, xi_i^k = max(0, 2 - (w_(y_i) - w_k) . x_i), row by row."""
    value = 0.5 * (W**2).sum() + (0.5 * (b**2).sum() if penalised else 0.0)
    for x, label, count in zip(X, y, counts):
        f = W @ x + b
        value += C * count * sum(max(0.0, 2.0 - (f[label] - f[k])) for k in range(len(W)) if k != label)
    return value


def written_out(X, y, k, constant):
    """Every row (i, k) of the joint problem as a full vector; margins are its products with W, row after row."""
    X = np.column_stack([X, np.ones(len(X))]) if constant else X
    rows = []
    for x, label in zip(X, y):
        for other in range(k):
            if other != label:
                row = np.zeros((k, X.shape[1]))
                row[label], row[other] = x, -x
                rows.append(row.ravel())
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("solver", ["auto", "cd", "interior"])
def test_the_printed_optimum(k, bias, C, solver):
    X, y, counts = sample(k)
    model = mdlearn.fit("ww", X, y, C=C, bias=bias, sample_weight=counts, solver=solver, tol=1e-11)
    A = written_out(X, y, k, bias == "regularized")
    # With W = 2 U: 4 (1/2 |U|^2 + C/2 sum (1 - a . U)_+), an SVM whose labels are all +1.
    best = optimum(A, np.ones(len(A)), C=C / 2, weight=np.repeat(counts, k - 1))
    told = model.certificate
    assert told.converged and told.parts == ()
    assert told.objective == pytest.approx(4.0 * float(best.value), rel=1e-10)
    held = printed(X, y, counts, C, model.coef_, model.intercept_, bias == "regularized")
    assert told.objective == pytest.approx(held, rel=1e-12)
    assert model.multiclass == "joint" and model.coef_.shape == (k, 4) and model.intercept_.shape == (k,)
    assert bias == "regularized" or not model.intercept_.any()


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_the_conditions_of_the_optimum(bias):
    k, C = 4, 0.7
    X, y, counts = sample(k, m=60)
    model = mdlearn.fit("ww", X, y, C=C, bias=bias, sample_weight=counts, solver="cd", tol=1e-13)
    a, W, m = model.duals, model.coef_, len(y)
    assert a.shape == (k, m) and (a >= 0).all() and (a <= C * counts).all()
    assert not a[y, np.arange(m)].any(), "a class has no multiplier against itself"
    # w_k = sum over the rows of class k of all their multipliers, less those of other rows against k.
    own = np.arange(k)[:, None] == y
    alpha = np.where(own, a.sum(axis=0), 0.0) - a
    np.testing.assert_allclose(model.dual_coef_, alpha, rtol=0, atol=1e-13)
    np.testing.assert_allclose(alpha @ X, W, rtol=0, atol=1e-9)
    if bias == "regularized":
        np.testing.assert_allclose(alpha.sum(axis=1), model.intercept_, rtol=0, atol=1e-9)
    f = model.decision_function(X)
    np.testing.assert_allclose(f, X @ W.T + model.intercept_, rtol=0, atol=1e-12)
    ahead = (f[np.arange(m), y][:, None] - f).T
    used = ~own & (counts > 0)
    assert (a[used & (ahead > 2 + 1e-6)] == 0).all()
    short = used & (ahead < 2 - 1e-6)
    np.testing.assert_allclose(a[short], np.broadcast_to(C * counts, a.shape)[short], rtol=1e-12)
    assert short.any() and ((a > 0) & (a < C * counts)).any()
    np.testing.assert_allclose(W.sum(axis=0), 0, atol=1e-9)
    assert (model.predict(X) == f.argmax(axis=1)).all()
    np.testing.assert_allclose(model.margins(X, y), np.where(own.T, np.inf, ahead.T).min(axis=1), atol=1e-12)
    total = np.sqrt((W**2).sum())
    np.testing.assert_allclose(model.margins(X, y, normalized=True) * total, model.margins(X, y), atol=1e-12)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_two_classes_are_an_svm(bias):
    X, y, counts = sample(2)
    joint = mdlearn.fit("ww", X, y, C=0.3, bias=bias, sample_weight=counts, tol=1e-12)
    svm = mdlearn.fit("svm", X, y, C=0.3, bias=bias, sample_weight=counts, tol=1e-12)
    np.testing.assert_allclose(joint.coef_, svm.coef_, atol=1e-9)
    assert joint.certificate.objective == pytest.approx(2.0 * svm.certificate.objective, rel=1e-11)
    W, b = np.vstack([-joint.coef_, joint.coef_]), np.append(-joint.intercept_, joint.intercept_)
    held = printed(X, y, counts, 0.3, W, b, bias == "regularized")
    assert joint.certificate.objective == pytest.approx(held, rel=1e-12)
    # Nothing better is near, in either class.
    rng = np.random.default_rng(1)
    for size in np.logspace(-4, 0, 20):
        step, shift = size * rng.standard_normal(W.shape), size * rng.standard_normal(2) * (bias != "none")
        assert printed(X, y, counts, 0.3, W + step, b + shift, bias == "regularized") >= held * (1 - 1e-9)


def test_weights_are_repetitions():
    X, y, counts = sample(4, m=50)
    weighted = mdlearn.fit("ww", X, y, sample_weight=counts, tol=1e-12)
    repeated = mdlearn.fit("ww", np.repeat(X, counts, axis=0), np.repeat(y, counts), tol=1e-12)
    left_out = mdlearn.fit("ww", X[counts > 0], y[counts > 0], sample_weight=counts[counts > 0], tol=1e-12)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    np.testing.assert_array_equal(weighted.coef_, left_out.coef_)
    np.testing.assert_array_equal(weighted.duals[:, counts > 0], left_out.duals)
    assert not weighted.duals[:, counts == 0].any()


@pytest.mark.parametrize("make", [sp.csr_matrix, np.asfortranarray, lambda X: X.astype(np.float32)])
def test_kinds_of_rows(make, tmp_path):
    X, y, counts = sample(3)
    X = np.round(8 * X) / 8  # exact in float32
    plain = mdlearn.fit("ww", X, y, sample_weight=counts, tol=1e-6)
    model = mdlearn.fit("ww", make(X), y, sample_weight=counts, tol=1e-6)
    assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=2e-6)
    assert model.coef_.dtype == model.duals.dtype == make(X).dtype
    model.save(tmp_path / "m.npz")
    again = mdlearn.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.duals, model.duals)


def test_it_is_the_limit_of_mmlr():
    """N C times (2.16) with lam = 1 / (2 N C) lies above (2.15), by ln 2 / alpha per hinge at most."""
    X, y, counts = sample(3)
    C, total = 0.5, counts.sum()
    joint = mdlearn.fit("ww", X, y, C=C, bias="none", sample_weight=counts, tol=1e-9).certificate.objective
    for alpha in (5.0, 50.0):
        settings = {"alpha": alpha, "lam": 1.0 / (2.0 * total * C), "bias": "none", "tol": 1e-9}
        smooth = mdlearn.fit("mmlr", X, y, sample_weight=counts, **settings).certificate.objective
        assert 0.0 < total * C * smooth - joint < C * total * 2 * np.log(2.0) / alpha


def test_many_rows_are_swept():
    """More than 2000 rows (i, k) take the sweeps over the written-out matrix, and the bound still holds."""
    X, y, _ = sample(5, m=700, d=6)
    swept = mdlearn.fit("ww", X, y, C=0.1, tol=1e-9, solver="cd")
    inner = mdlearn.fit("ww", X, y, C=0.1, tol=1e-9, solver="interior")
    assert swept.certificate.converged
    assert swept.certificate.objective == pytest.approx(inner.certificate.objective, rel=2e-9)
    assert swept.certificate.lower_bound <= inner.certificate.objective


def test_what_is_refused():
    X, y, _ = sample(3)
    with pytest.raises(ValueError, match=r"no free bias for 3 classes; give bias='regularized'"):
        mdlearn.fit("ww", X, y, bias="free")
    with pytest.raises(ValueError, match="give kernel='linear'"):
        mdlearn.fit("ww", X, y, kernel="rbf")
    with pytest.raises(ValueError, match="multiclass 'ovr' is not possible"):
        mdlearn.fit("ww", X, y, multiclass="ovr")
    with pytest.raises(ValueError, match="C needs to be a finite number"):
        mdlearn.fit("ww", X, y, C=np.inf)


# ---------------------------------------------------------------- the rows of the joint problem


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)])
def test_products_are_those_of_the_rows_written_out(make, constant):
    rng = np.random.default_rng(2)
    X, y, _ = sample(4, m=12, d=3)
    X = np.round(8 * X) / 8 * (rng.random(X.shape) < 0.7)
    A = written_out(X, y, 4, constant)
    rows = class_contrasts(check_rows(make(X)), y, 4, constant)
    assert rows.shape == A.shape and rows.dtype == make(X).dtype and np.isfinite(rows.largest())
    w, v, weights = rng.standard_normal(A.shape[1]), rng.standard_normal(len(A)), rng.random(len(A))
    scale = 1.0 + rng.random(A.shape[1])
    pairs = [
        (rows.dot(w), A @ w),
        (rows.dot(np.outer(w, [1.0, -2.0])), A @ np.outer(w, [1.0, -2.0])),
        (rows.adjoint(v), A.T @ v),
        (rows.squares(), (A**2).sum(axis=1)),
        (rows.squares(scale), (A**2 / scale).sum(axis=1)),
        (rows.column_squares(weights), weights @ A**2),
        (rows.block(slice(3, 9)), A[3:9]),
        (rows.block(np.array([7, 2])), A[[7, 2]]),
        (rows.block(np.array([], dtype=int)), A[:0]),
        (rows.take(slice(0, 5)).inner(rows.take(np.array([8, 1]))), A[:5] @ A[[8, 1]].T),
        (rows.inner(check_rows(A)), A @ A.T),
        (rows.take(np.array([8, 1])).dot(w), A[[8, 1]] @ w),
        (rows.matrix().toarray(), A),
    ]
    for i, (got, want) in enumerate(pairs):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12, err_msg=str(i))
    assert rows.X.has_canonical_format and rows.X.dtype == rows.dtype and rows.X.indptr.flags.c_contiguous
    assert np.concatenate([np.arange(len(A))[span] for span in rows.spans()]).tolist() == list(range(len(A)))


def test_the_matrix_is_not_written_out_without_need(monkeypatch):
    """Interior steps read blocks and products only; the sweeps ask for the memory first."""
    X, y, _ = sample(5, m=700, d=6)
    monkeypatch.setattr("mdlearn.numerics.memory.NEGLIGIBLE_BYTES", 0.0)
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 1e6)
    rows = class_contrasts(check_rows(X), y, 5, True)
    with pytest.raises(InsufficientMemory, match="writing out 2800 rows of a joint problem"):
        _ = rows.X
    assert rows.dot(np.ones(35)).shape == (2800,)
    assert "X" not in vars(rows)


def test_digits_at_the_default_tolerance_of_estimators():
    """Small products of many classes: in one BLAS thread a second, in two that wait for each other minutes."""
    datasets = pytest.importorskip("sklearn.datasets")
    from mdlearn.sklearn import MarginClassifier

    X, y = datasets.load_digits(return_X_y=True)
    seen = set()

    def libraries(state):
        seen.update(info["num_threads"] for info in threadpoolctl.threadpool_info() if info["user_api"] == "blas")

    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        model = mdlearn.fit("ww", X, y, tol=MarginClassifier().tol, callback=libraries)
    assert model.certificate.converged and model.n_iter < 300
    assert seen == {1}
