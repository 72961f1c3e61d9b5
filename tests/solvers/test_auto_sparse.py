"""What ``solver="auto"`` takes for sparse rows: second-order steps where these cost less than sweeps do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from two_hinges import TwoHinges

import mdlearn
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.solvers.systems.weighted_gram import weighted_gram_operations


def rows(m, d, entries, seed=0):
    """m sparse rows of about so many entries each, and labels that overlap."""
    rng = np.random.default_rng(seed)
    X = sparse.random(m, d, density=entries / d, format="csr", random_state=seed)
    f = X @ rng.standard_normal(d)
    return X, np.where(f / f.std() + 0.3 * rng.standard_normal(m) > 0, 1, 0)


@pytest.mark.parametrize(
    "objective, params, cheap, dear",
    [
        (TwoHinges, {}, "interior", "cd"),
        (TwoHinges, {"v": 2.0}, "interior", "cd"),
        ("lssvm", {}, "direct", "cd"),
        ("svm", {}, "hybrid", "hybrid"),
        ("ldm", {}, "hybrid", "hybrid"),
        ("lsvm", {}, "hybrid", "hybrid"),
        ("l2lr", {}, "hybrid", "hybrid"),
    ],
)
def test_entries_decide(objective, params, cheap, dear):
    """With 600 columns sweeps over 30 entries a row are not cheap, those over 600 entries in all are."""
    X, y = rows(6000, 600, 30)
    assert mdlearn.fit(objective, X, y, tol=1e-6, **params).solver == cheap
    X, y = rows(600, 600, 1)
    model = mdlearn.fit(objective, X, y, tol=1e-6, **params)
    assert model.certificate.converged and model.solver == dear


@pytest.mark.slow
def test_clusters_of_columns():
    """Rows in blocks of columns of their own, with C so large that sweeps crawl."""
    rng = np.random.default_rng(1)
    blocks = [rows(1500, 130, 14, seed)[0] for seed in range(6)]
    X = sparse.block_diag(blocks, format="csr")
    y = np.where(X @ rng.standard_normal(780) + rng.standard_normal(9000) > 0, 1, 0)
    model = mdlearn.fit(TwoHinges, X, y, C=1e3, tol=1e-6)
    assert model.certificate.converged and model.solver == "interior"
    with pytest.warns(mdlearn.ConvergenceWarning):
        sweeps = mdlearn.fit(TwoHinges, X, y, C=1e3, tol=1e-6, solver="cd", max_iter=model.n_iter * 5)
    assert sweeps.certificate.objective >= model.certificate.lower_bound
    assert not sweeps.certificate.converged
    plain = mdlearn.fit("svm", X, y, C=1e3, tol=1e-6)
    assert plain.certificate.converged and plain.solver == "hybrid"


@pytest.mark.parametrize(
    ("d", "density", "single"),
    [(40, 0.05, True), (40, 0.5, True), (300, 0.3, True), (40, 0.9, False), (300, 0.5, False), (1500, 0.4, False)],
)
def test_counted_operations(d, density, single):
    """Products of single entries where these are fewer than what rows that are written out cost; else those of BLAS."""
    X = sparse.random(50, d, density=density, format="csr", random_state=2)
    expected = sum(n * n / 2 for n in np.diff(X.indptr)) if single else 50 * d * d
    assert weighted_gram_operations(CsrRows(X)) == expected


@pytest.mark.parametrize("objective", ["l2lr", "mlr"])
def test_few_dense_rows_of_many_columns(objective):
    """Steps over a small Gram matrix, where conjugate gradients took ten times as long; nothing else changes."""
    rng = np.random.default_rng(0)
    X = 2.0 + rng.standard_normal((120, 400))
    y = np.where(rng.standard_normal(120) > 0, 1, 0)
    few = mdlearn.fit(objective, X, y, tol=1e-6)
    other = mdlearn.fit(objective, X, y, tol=1e-6, solver="hybrid")
    assert few.solver == "newton" and few.certificate.converged
    assert few.certificate.lower_bound <= other.certificate.objective * (1 + 1e-9)
    assert other.certificate.lower_bound <= few.certificate.objective * (1 + 1e-9)
    assert mdlearn.fit(objective, np.vstack([X] * 5), np.tile(y, 5), tol=1e-2).solver == "hybrid", "600 rows"
    assert mdlearn.fit("svm", X, y, tol=1e-6).solver == "hybrid"
    assert mdlearn.fit(objective, sparse.csr_matrix(X), y, tol=1e-6).solver == "hybrid"
