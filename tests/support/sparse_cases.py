"""Sparse rows with labels from a noisy plane."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

TOTAL = 3000


def planted(m=TOTAL, d=800, per_row=12, seed=0):
    """Unit sparse rows, more rows than the Gram route of cd takes, labels from a noisy plane."""
    rng = np.random.default_rng(seed)
    X = sp.random(m, d, density=per_row / d, random_state=seed, format="csr")
    X.data = rng.standard_normal(X.nnz)
    X = sp.csr_matrix(sp.diags(1 / np.sqrt(np.maximum(np.asarray(X.multiply(X).sum(axis=1)).ravel(), 1e-12))) @ X)
    y = np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(m) > 0.2, 1, -1)
    return X, y
