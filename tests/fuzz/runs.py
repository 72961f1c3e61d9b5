"""One fit of a problem: engine, layout of the rows and limits; what came of it, and how long it took."""

from __future__ import annotations

import time
import traceback
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import mdlearn
from fuzz.problems import labelled
from fuzz.reference import values_of

ALIKE_POINTS = 1e-9
"""Relative difference of centres and landmarks that rounding, in another order of sums, may make."""
CONTRADICTION = 1e-8
"""Relative to `scale_of`: how far a bound may be above an objective."""
REACHABLE = 1e-11
"""Smallest gap that float64 is held to; `tol` is honoured down to what rounding allows."""
LIMIT = 1.0
"""Seconds that a fit has, unless it is to have less."""
ALLOWED = 0.1, 0.3
"""What a limit may be exceeded by: a share of it and seconds."""


# ---------------------------------------------------------------- layouts


def _frozen(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _wide(X):
    return np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]


def _long(X):
    A = sp.csr_matrix(X)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


DENSE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "read-only": _frozen,
    "strided": _wide,
    "reversed": lambda X: np.ascontiguousarray(X[::-1])[::-1],
}
SPARSE = {
    "csr": sp.csr_matrix,
    "csr int64": _long,
    "csc": sp.csc_matrix,
    "csr array": sp.csr_array,
}
LAYOUTS = {**DENSE, **SPARSE}


def laid_out(problem, layout):
    """Rows as fit gets them."""
    X = problem.X.astype(np.float32) if problem.single else problem.X
    return LAYOUTS[layout](X) if layout in LAYOUTS else X


def blocks_of(problem, n=4):
    """Rows in blocks: a list of (X, y, weight)."""
    X, y, w = laid_out(problem, "as it is"), problem.y, problem.weight
    cuts = np.array_split(np.arange(len(y)), n)
    return [(X[cut], y[cut]) if w is None else (X[cut], y[cut], w[cut]) for cut in cuts if len(cut)]


# ---------------------------------------------------------------- a fit


@dataclass(frozen=True)
class Run:
    """How a problem is solved."""

    role: str
    solver: str = "auto"
    layout: str = "C"
    given: dict = field(default_factory=dict)

    def __str__(self):
        told = {key: ("model" if key == "warm_start" else value) for key, value in self.given.items()}
        return f"{self.role}: {self.solver}, {self.layout}, {told}"


@dataclass
class Outcome:
    """What came of a run: a model or an error."""

    problem: Any
    run: Run
    model: Any = None
    error: BaseException | None = None
    where: str = ""
    warned: tuple = ()
    wall: float = 0.0
    cpu: float = 0.0
    limit: float = LIMIT
    origin: np.ndarray | None = None
    call: Any = None
    _values: Any = None

    @property
    def complete(self):
        """Whether time did not end it: only then it is the same again."""
        return self.wall < 0.8 * self.limit and not any("time_limit" in text for _, text, _ in self.warned)

    @property
    def late(self):
        return min(self.wall, self.cpu) > self.limit * (1 + ALLOWED[0]) + ALLOWED[1]

    @property
    def parts(self):
        """Certificates of single problems."""
        return parts_of(self.model)

    @property
    def values(self):
        if self._values is None:
            self._values = values_of(self.problem, self.model, laid_out(self.problem, self.run.layout))
        return self._values

    @property
    def key(self):
        """What features were made of the rows: problems that differ here are not the same."""
        extras = self.model.extras
        names = [name for name in ("centers_", "landmarks_") if name in extras]
        if names:
            points = [np.asarray(p, dtype=float) for name in names for p in _tuple(extras[name])]
            sizes = [abs(p).max(initial=0.0) or 1.0 for p in points]
            gamma = self.model.params.get("gamma", 0.0)
            if isinstance(gamma, float) and gamma * (ALIKE_POINTS * max(sizes)) ** 2 > ALIKE_POINTS:
                return tuple(p.tobytes() for p in points)  # so narrow a kernel sees what rounding moves
            return tuple(np.round(p / size, 9).tobytes() for p, size in zip(points, sizes))
        if "basis_indices_" in extras:
            indices = extras["basis_indices_"]
            origin = np.arange(len(self.problem.codes)) if self.origin is None else self.origin
            return tuple(tuple(sorted(set(origin[i].tolist()))) for i in _tuple(indices))
        return ()


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def parts_of(model):
    """Certificates of the single problems of a model; a joint one is one, in whatever parts it was solved."""
    return (model.certificate.parts if model.multiclass != "joint" else ()) or (model.certificate,)


def scale_of(objective, lower, at_zero):
    """What a relative difference of objectives is measured by: that of the library's gap, and the bound's size."""
    sizes = [abs(v) for v in (float(objective), float(lower), 0.01 * float(at_zero)) if np.isfinite(v)]
    return max([*sizes, 1e-300])


def fit(problem, run, origin=None, limit=LIMIT, call=None):
    """Outcome of a run; nothing that a fit raises or warns of is lost."""
    out = Outcome(problem, run, limit=limit, origin=origin, call=call)
    given = {"n_threads": 1, "random_state": problem.index, "time_limit": limit, **problem.arguments(), **run.given}
    given = {key: value for key, value in given.items() if value is not None}
    if run.layout == "blocks":
        X, y = blocks_of(problem), None
        given.pop("sample_weight", None)
    else:
        X, y = laid_out(problem, run.layout), problem.y
    with warnings.catch_warnings(record=True) as seen, np.errstate(divide="warn", over="warn", invalid="warn"):
        warnings.simplefilter("always")
        began = time.perf_counter(), time.process_time()
        try:
            if call is None:
                out.model = mdlearn.fit(problem.objective, X, y, solver=run.solver, **given)
            else:
                out.model = call(problem.objective, X, y, solver=run.solver, **given)
        except Exception as error:
            out.error = error
            frames = traceback.extract_tb(error.__traceback__)
            out.where = f"{frames[-1].filename}:{frames[-1].lineno} {frames[-1].name}"
            out.error.__traceback__ = None
        out.wall, out.cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    out.warned = tuple((w.category.__name__, str(w.message), f"{w.filename}:{w.lineno}") for w in seen)
    return out


def repeated(problem):
    """The problem with every row as often as its weight says, and which row each was."""
    origin = np.repeat(np.arange(len(problem.codes)), np.asarray(problem.weight))
    X = problem.X[np.ix_(origin, origin)] if problem.kernel == "precomputed" else problem.X[origin]
    some = replace(problem, X=X, codes=problem.codes[origin], weight=None)
    if isinstance(problem.class_weight, dict):
        # Weights of 0 may have been all rows of a class, and with fewer classes labels have other names.
        before, after = (labelled(np.arange(one.k), one.labels).tolist() for one in (problem, some))
        here = np.unique(some.codes)
        factors = {after[j]: problem.class_weight[before[j]] for j in here if before[j] in problem.class_weight}
        some = replace(some, class_weight=factors or None)
    return some, origin
