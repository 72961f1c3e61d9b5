"""Problems at the edge: few rows, equal rows, classes of one row or of none, sizes near the end of floats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

COUNTED = ("n_clusters", "n_landmarks", "n_components", "reduced")
"""Parameters that may be no more than there are distinct rows."""


def _one_row(rng, p):
    """A class of one row."""
    return replace(p, codes=np.r_[0, np.ones(len(p.codes) - 1, dtype=int)], multiclass="auto")


def _few(rng, p, n=None):
    """As many rows as classes, or one or two more."""
    some = slice(0, p.k + int(rng.integers(0, 3)))
    X = p.X[some, some] if p.kernel == "precomputed" else p.X[some]
    return replace(p, X=X, codes=p.codes[some], weight=None if p.weight is None else p.weight[some])


def _equal(rng, p):
    """All rows the same."""
    return replace(p, X=np.full_like(p.X, abs(p.X[0, 0])))


def _nothing(rng, p):
    """All rows zero."""
    return replace(p, X=np.zeros_like(p.X))


def _missing(rng, p):
    """A class whose weights are all 0."""
    weight = np.ones(len(p.codes), dtype=int) if p.weight is None else p.weight.copy()
    weight[p.codes == p.k - 1] = 0
    return replace(p, weight=weight)


def _far(rng, p):
    """Rows of a size whose squares have no exponent, or nearly."""
    top = 15 if p.single else 150
    return replace(p, X=p.X * 10.0 ** float(rng.choice([-2 * top, -top, top / 2, top])))


def _huge(rng, p):
    """Parameters that are finite, and no more."""
    names = [name for name, value in p.params.items() if type(value) is float and name not in ("sigma", "alpha")]
    changed = {name: float(rng.choice([1e-300, 1e-100, 1e30, 1e100, 1e300])) for name in names if rng.random() < 0.6}
    return replace(p, params={**p.params, **changed})


EDGES = (_one_row, _few, _equal, _nothing, _missing, _far, _huge)


def at_the_edge(seed, index, p):
    """Now and then, a problem with something extreme: it has a model with a true certificate, or a sentence."""
    rng = np.random.default_rng([seed, index, 4])
    if rng.random() > 0.07:
        return p
    edge = EDGES[rng.integers(len(EDGES))]
    changed = edge(rng, p)
    if p.single:
        changed = replace(changed, X=changed.X.astype(np.float32).astype(float))
    if not np.isfinite(changed.X).all():
        return p
    distinct = len(np.unique(changed.X[changed.counts > 0], axis=0))
    clipped = [
        {key: min(v, distinct) if key in COUNTED else v for key, v in given.items()}
        for given in (changed.params, changed.kernel_params)
    ]
    return replace(changed, params=clipped[0], kernel_params=clipped[1], traits=(*p.traits, edge.__name__[1:]))
