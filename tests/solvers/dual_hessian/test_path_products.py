"""What a path computes without a product is what the product gives."""

from __future__ import annotations

import numpy as np
import pytest

from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column
from mdlearn.solvers.dual_hessian.hessian import ExactHessian


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_pull_through_the_hessian(seed: int, offset: bool) -> None:
    """H y pull from the border, against H written out: R + omega (R p)(R p)'."""
    rng = np.random.default_rng(seed)
    m, kappa, mean = 30, 0.7, 3.0
    A = rng.normal(size=(m, 8))
    G, counts = A @ A.T, rng.integers(1, 4, m).astype(float)
    y = np.ones(m) if offset else np.where(rng.random(m) < 0.3, -1.0, 1.0)
    targets = rng.normal(size=m) if offset else None
    column = Column(y, counts, 0.5 * kappa * counts.sum(), mean, (HingeTerm(2.0),), offset=targets)
    P = np.diag(counts)
    R = G @ np.linalg.inv(np.eye(m) + kappa * P @ G)
    p = counts * y
    H = G @ np.linalg.inv(np.eye(m) + kappa * (P - np.outer(p, p) / counts.sum()) @ G)
    pull = y * column.pull
    found = ExactHessian(G, 0.5 * (R + R.T), 0.0, column).pulled(pull)
    assert np.allclose(found, H @ pull, rtol=1e-9, atol=1e-9 * float(np.abs(H).max()))
