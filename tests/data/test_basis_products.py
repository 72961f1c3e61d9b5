"""Linear kernel columns of sparse rows, too many to be kept: products go through one vector of the rows' columns."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import mdlearn
from mdlearn.data.features import basis
from mdlearn.data.features.kernels import make_kernel
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.solvers.proximal_gradient import solver as proximal


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    X = sparse.random(300, 400, density=0.03, format="csr", random_state=0)
    f = X @ rng.standard_normal(400)
    return X, np.where(f + 0.3 * rng.standard_normal(300) > 0, 1, 0)


def test_products(sample, monkeypatch):
    index = np.arange(0, 300, 3)
    rows = CsrRows(sample[0])
    columns = basis.BasisColumns(rows, make_kernel("linear", {}, rows, np.ones(300)), index)
    K = (sample[0] @ sample[0][index].T).toarray()
    assert not columns.folded
    monkeypatch.setattr(basis, "COPY_BYTES", 0)
    assert columns.folded
    monkeypatch.setattr(basis.BasisColumns, "block", None)  # no kernel value is asked for
    rng = np.random.default_rng(1)
    for k in ((), (3,)):
        w, v = rng.standard_normal((100, *k)), rng.standard_normal((300, *k))
        assert_allclose(columns.dot(w), K @ w, atol=1e-13)
        assert_allclose(columns.adjoint(v), K.T @ v, atol=1e-13)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_no_matrix_of_the_size_of_the_rows(sample, bias, monkeypatch):
    expected = mdlearn.fit("uldm", *sample, bias=bias, tol=1e-6)
    assert expected.solver == "direct"
    monkeypatch.setattr(basis, "COPY_BYTES", 0)
    monkeypatch.setattr(proximal, "STEP_OPERATIONS", 1e6)
    model = mdlearn.fit("uldm", *sample, bias=bias, tol=1e-6)
    assert model.solver == "apg" and model.certificate.converged
    assert model.certificate.lower_bound <= expected.certificate.objective <= 0
    assert expected.certificate.lower_bound <= model.certificate.objective
    f = expected.decision_function(sample[0])
    assert_allclose(model.decision_function(sample[0]), f, atol=1e-2 * np.abs(f).max())
