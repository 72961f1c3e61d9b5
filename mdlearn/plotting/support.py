"""Support vectors as far as a picture shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

VISIBLE = 1e-4
"""Share of the largest dual coefficient below which a row holds nothing: interior points leave a trace on every row."""


def support_rows(model: Any) -> np.ndarray:
    """Rows of `support_` with a dual coefficient above 1e-4 of the largest; all of them where models know only rows."""
    rows = np.asarray(getattr(model, "support_", ()), dtype=np.intp)
    alpha = getattr(model, "dual_coef_", None)
    if alpha is None or not rows.size or np.shape(alpha)[-1] <= rows.max():
        return rows
    size = np.abs(np.asarray(alpha)[:, rows]).max(axis=0)
    return rows[size > VISIBLE * size.max()]
