"""Sparse, float32, int64 and column-ordered input: the same problem as the dense float64 one, without a dense copy."""

import numpy as np
import pytest
import scipy.sparse as sp
from judging import quiet_fit
from sparse_cases import TOTAL, planted

import mdlearn
import mdlearn._solvers.centred as kernels

X, Y = planted()


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("lambda1", [0.0, 1.0, TOTAL / 16, TOTAL / 4, 16.0 * TOTAL])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_cd_over_csr_reaches_the_dense_optimum(bias, lambda1, C):
    lambda2 = 0.01 if lambda1 == 0 else min(lambda1 / 4, 1.0)
    settings = {"C": C, "lambda1": lambda1, "lambda2": lambda2, "bias": bias}
    model = mdlearn.fit("ldm", X, Y, solver="cd", **settings)
    exact = mdlearn.fit("ldm", X.toarray(), Y, solver="interior", tol=1e-10, **settings)
    assert model.solver == "cd" and model.certificate.converged and model.certificate.gap <= 1e-6
    scale = max(abs(exact.certificate.objective), 0.01 * C * TOTAL)
    assert abs(model.certificate.objective - exact.certificate.objective) <= 1.1e-6 * scale
    assert model.certificate.lower_bound <= exact.certificate.objective * (1 + 1e-10)
    z = np.where(Y == 1, 1.0, -1.0) * (X @ model.coef_[0] + model.intercept_[0])
    value = 0.5 * model.coef_[0] @ model.coef_[0] + 2 * lambda1 * z.var() - lambda2 * z.mean()
    value += C * np.maximum(0, 1 - z).sum() + (0.5 * model.intercept_[0] ** 2 if bias == "regularized" else 0)
    assert model.certificate.objective == pytest.approx(value, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["cd", "interior"])
def test_forms_of_the_same_matrix(solver):
    long = X.copy()
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    model = mdlearn.fit("ldm", X, Y, solver=solver, tol=1e-8)
    for other in (long, X.tocsc(), X.tocoo(), X[:, :]):
        same = mdlearn.fit("ldm", other, Y, solver=solver, tol=1e-8)
        np.testing.assert_allclose(same.coef_, model.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(X), model.decision_function(X.toarray()), atol=1e-12)


@pytest.mark.parametrize("solver", ["cd", "interior"])
def test_float32_rows_give_the_objective_of_float64(solver):
    single, double = X.astype(np.float32), X
    left = mdlearn.fit("ldm", single, Y, solver=solver).certificate.objective
    right = mdlearn.fit("ldm", double, Y, solver=solver).certificate.objective
    assert left == pytest.approx(right, rel=1e-5)


def test_weights_are_repetitions_on_sparse_rows():
    few, labels = X[:2200], Y[:2200]
    weight = np.random.default_rng(3).integers(0, 3, 2200).astype(float)
    repeated = np.repeat(np.arange(2200), weight.astype(int))
    a = quiet_fit("ldm", few, labels, sample_weight=weight, solver="cd", tol=1e-9)
    b = quiet_fit("ldm", few[repeated], labels[repeated], solver="cd", tol=1e-9)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=3e-9)


def test_the_input_is_left_alone_and_read_only_is_enough():
    kept = X.copy()
    kept.data.flags.writeable = kept.indices.flags.writeable = kept.indptr.flags.writeable = False
    first = mdlearn.fit("ldm", kept, Y, solver="cd")
    again = mdlearn.fit("ldm", kept, Y, solver="cd")
    assert first.coef_.tobytes() == again.coef_.tobytes()
    assert (kept != X).nnz == 0


def test_duplicate_entries_count_once_summed():
    rows = sp.coo_matrix(X)
    doubled = sp.csr_matrix(
        (np.r_[rows.data / 2, rows.data / 2], (np.r_[rows.row, rows.row], np.r_[rows.col, rows.col])), shape=X.shape
    )
    a, b = mdlearn.fit("svm", doubled, Y), mdlearn.fit("svm", X, Y)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-6)


def test_constraints_on_sparse_rows_name_who_can():
    with pytest.raises(ValueError, match=r"finite C.*use one of .*interior"):
        mdlearn.fit("svm", X, Y, C=np.inf, solver="cd")


@pytest.mark.parametrize("lambda1", [0.0, 1.0])
def test_products_with_rows_are_counted(lambda1, monkeypatch):
    counted, visit = [], kernels.sweep
    monkeypatch.setattr(kernels, "sweep", lambda *given: counted.append(given[-1].shape[0]) or visit(*given))
    model = mdlearn.fit("ldm", X, Y, lambda1=lambda1, lambda2=0.0, solver="cd")
    work = [state.row_dots for state in model.history]
    assert work[0] == TOTAL and work == sorted(work) and work[-1] == sum(counted)
    assert mdlearn.fit("ldm", X, Y, lambda1=lambda1, solver="interior").history[0].row_dots is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_entries(bad):
    broken = X.copy()
    broken.data[5] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        mdlearn.fit("svm", broken, Y)
