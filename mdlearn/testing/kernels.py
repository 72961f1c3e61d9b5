"""Kernels, checked: a symmetric and positive semidefinite function of two rows, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mdlearn.api import fit
from mdlearn.data.features.kernels import Kernel, make_plugin_kernel
from mdlearn.data.kernel_functions import KernelFunction, kernel_function_takes_objects
from mdlearn.data.rows.rows import DenseRows
from mdlearn.errors import came
from mdlearn.objectives.base import Parameter
from mdlearn.plugins.registry import registry
from mdlearn.testing.require import CLOSE, require, require_clauses

SEMIDEFINITE = 1e-8
"""Share of the largest eigenvalue of a kernel's matrix down to which a negative one is rounding."""
SAME_VALUE = 1e-9
"""Difference of two values of a kernel for the same rows that is rounding, in units of the largest value."""
FEWEST_OBJECTS = 10
"""Objects that the checks of a kernel need."""
LONG_BLOCK = 1100
"""Rows of a long block: kernels that work in pieces of their own have several of them there."""


def check_kernel(kernel: Any, X: np.ndarray | None = None) -> None:
    """Check a kernel of a plugin: declaration, values, and a model that is made with it.

    Parameters
    ----------
    kernel : str or class
        A registered name, or a subclass of `mdlearn.KernelFunction`; it is tried with its defaults.
    X : array of shape (m, d), or list of objects, optional
        Rows to try it on, 10 to 100. Default: 24 rows of three numbers of either sign, two rows equal and one of zeros;
        the kernel's `examples` where it compares objects.

    Raises
    ------
    AssertionError
        One sentence: the clause that does not hold, and the fewest rows with which it does not.
    """
    cls = registry().kernels[kernel] if isinstance(kernel, str) else kernel
    require_clauses(f"kernel {getattr(cls, 'name', cls.__name__)!r}", KERNEL_CLAUSES, cls, _checked_kernel_rows(X, cls))


def kernel_declares_parameters(cls: type[KernelFunction], X: np.ndarray) -> None:
    """Check the declaration of a kernel: one line as summary, parameters with texts, and defaults within bounds."""
    require(len(cls.summary.splitlines()) == 1, "summary needs to be one line of text, best the formula")
    objects = kernel_function_takes_objects(cls) or not len(cls.examples)
    require(objects, "it has examples, so that it compares objects; say so by rows = 'any'")
    for name, parameter in cls.parameters.items():
        require(isinstance(parameter, Parameter), f"parameters[{name!r}] needs to be a Parameter")
        require(bool(parameter.doc), f"parameter {name} has no doc; say what it is")
    for name, value in make_plugin_kernel(cls, {}, 40.0).params.items():
        cls.parameters[name].check(name, value)


def kernel_returns_values(cls: type[KernelFunction], X: np.ndarray) -> None:
    """Check that a kernel returns a finite number for every two rows, of blocks and of single rows."""
    for A, B in ((X, X), (X[:1], X[:1]), (X[:3], X)):
        _checked_kernel_values(cls, A, B)


def kernel_repeats_itself(cls: type[KernelFunction], X: np.ndarray) -> None:
    """Check that a kernel called twice with the same rows returns the same bits."""
    first, second = _checked_kernel_values(cls, X, X), _checked_kernel_values(cls, X, X)
    if not np.array_equal(first, second):
        i, j = np.argwhere(first != second)[0]
        raise AssertionError(
            f"k(a, b) is {float(first[i, j])!r} at first and {float(second[i, j])!r} in the next call, for "
            f"a = {_shown_checked_kernel_row(X[i])}, b = {_shown_checked_kernel_row(X[j])}; draw no random numbers "
            "and keep no state"
        )


def kernel_is_symmetric(cls: type[KernelFunction], X: np.ndarray) -> None:
    """Check that k(a, b) of a kernel is k(b, a), for single rows."""
    single = _single_checked_kernel_values(cls, X)
    off = ~(np.abs(single - single.T) <= SAME_VALUE * np.maximum(np.abs(single), np.abs(single.T)))
    if off.any():
        i, j = np.argwhere(off)[0]
        raise AssertionError(
            f"k(a, b) is {float(single[i, j])!r} and k(b, a) is {float(single[j, i])!r} for "
            f"a = {_shown_checked_kernel_row(X[i])}, b = {_shown_checked_kernel_row(X[j])}"
        )


def kernel_compares_two_rows(cls: type[KernelFunction], X: np.ndarray) -> None:
    """Check that values of a kernel do not depend on the block that they are computed in."""
    single = _single_checked_kernel_values(cls, X)
    n, long = len(X), np.resize(np.arange(len(X)), LONG_BLOCK)
    some = np.arange(min(n, 7))
    for left, right in ((np.arange(n), np.arange(n)), (some, np.arange(n)), (long, some), (some, long)):
        wanted, found = single[np.ix_(left, right)], _checked_kernel_values(cls, X[left], X[right])
        off = np.abs(found - wanted) > SAME_VALUE * np.abs(single).max()
        if off.any():
            i, j = np.argwhere(off)[0]
            raise AssertionError(
                f"k(a, b) is {float(wanted[i, j])!r} alone, and {float(found[i, j])!r} as entry ({i}, {j}) of a block "
                f"of {len(left)} and {len(right)} rows, for a = {_shown_checked_kernel_row(X[left[i]])}, "
                f"b = {_shown_checked_kernel_row(X[right[j]])}"
            )


def kernel_is_semidefinite(cls: type[KernelFunction], X: np.ndarray) -> None:
    """Check that the matrix of a kernel has no negative eigenvalue; else rows are left out while it has one."""

    def lowest(rows: np.ndarray) -> float:
        values = np.linalg.eigvalsh(_checked_kernel_values(cls, rows, rows))
        return 0.0 if values[0] >= -SEMIDEFINITE * np.abs(values).max() else float(values[0])

    if lowest(X) == 0.0:
        return
    i = 0
    while i < len(X):
        rest = np.delete(X, i, axis=0)
        if len(rest) and lowest(rest) < 0.0:
            X = rest
        else:
            i += 1
    raise AssertionError(
        f"the matrix of {len(X)} rows has the eigenvalue {lowest(X)!r}, which needs to be >= 0: {X.tolist()}"
    )


def kernel_makes_a_model(cls: type[KernelFunction], X: np.ndarray) -> None:
    """Check that an SVM with a kernel converges, and that its decision values are sums of kernel values."""
    y = np.arange(len(X)) % 2
    if kernel_function_takes_objects(cls):
        G = _checked_kernel_values(cls, X, X)
        model, Z, shown = fit("svm", G, y, kernel="precomputed"), X[::-1], G[::-1]
    else:
        model = fit("svm", X, y, kernel=lambda A, B: _checked_kernel_values(cls, np.asarray(A), np.asarray(B)))
        Z = shown = 0.5 * (X[:-1] + X[1:])
    require(model.certificate.converged, f"an SVM with this kernel ends at the gap {model.certificate.gap:.2g}")
    f = model.decision_function(shown)
    wanted = _checked_kernel_values(cls, Z, X) @ model.dual_coef_[0] + model.intercept_[0]
    far = float(np.abs(f - wanted).max())
    require(far <= CLOSE * max(1.0, float(np.abs(wanted).max())), f"decision values of one model differ by {far:.2g}")


def kernel_stores_its_rows(cls: type[KernelFunction], X: np.ndarray) -> None:
    """Check that a kernel makes of stored objects equal ones; one that stores none has to say so by a ValueError."""
    if not kernel_function_takes_objects(cls) or cls.encoded is KernelFunction.encoded:
        return
    held = cls().encoded(list(X))
    require(isinstance(held, Mapping), f"encoded returned {came(held)}, a mapping is needed")
    again = cls().decoded(dict(held))
    require(isinstance(again, list) and len(again) == len(X), "decoded needs to return a list of as many objects")
    same = np.array_equal(
        _checked_kernel_values(cls, _checked_kernel_objects(again), X), _checked_kernel_values(cls, X, X)
    )
    require(same, "objects that went through encoded and decoded have other kernel values")


def _shown_checked_kernel_row(row: Any) -> Any:
    """Row of a kernel's checks as an error shows it."""
    return row.tolist() if isinstance(row, np.ndarray) else f"{row!r:.60}"


KERNEL_CLAUSES = (
    kernel_declares_parameters,
    kernel_returns_values,
    kernel_repeats_itself,
    kernel_is_symmetric,
    kernel_compares_two_rows,
    kernel_is_semidefinite,
    kernel_makes_a_model,
    kernel_stores_its_rows,
)
"""Clauses of the contract of kernels, in the order in which `check_kernel` goes through them."""


def _checked_kernel_rows(X: Any, cls: type[KernelFunction]) -> np.ndarray:
    """Rows for the checks of a kernel; an array of objects where it compares such."""
    if kernel_function_takes_objects(cls):
        given = list(cls.examples if X is None else X)
        told = (
            f"kernel {cls.name!r}: the checks need {FEWEST_OBJECTS} objects, as X or as its examples; got {len(given)}"
        )
        require(len(given) >= FEWEST_OBJECTS, f"kernel {cls.name!r}: {told}")
        return _checked_kernel_objects(given)
    if X is not None:
        return np.array(X, dtype=float)
    rng = np.random.default_rng(0)
    found = rng.standard_normal((24, 3))
    found[1], found[2], found[3] = found[0], 0.0, 4.0 * found[4]
    return found


def _checked_kernel_objects(objects: Any) -> np.ndarray:
    """Array of objects for a kernel's checks; lists of one length would else become a matrix."""
    found = np.empty(len(objects), dtype=object)
    for i, one in enumerate(objects):
        found[i] = one
    return found


def _checked_kernel_values(cls: type[KernelFunction], A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Values of a kernel with its defaults, checked as in a fit; rows are lent for reading only."""
    kernel: Kernel = make_plugin_kernel(cls, {}, float(len(A)))
    return kernel.block(
        *(kernel.rows_of(one) if kernel_function_takes_objects(cls) else DenseRows(one) for one in (A, B))
    )


def _single_checked_kernel_values(cls: type[KernelFunction], X: np.ndarray) -> np.ndarray:
    """Values of a kernel for every two rows, computed one by one."""
    rows = [X[i : i + 1] for i in range(len(X))]
    return np.array([[_checked_kernel_values(cls, a, b)[0, 0] for b in rows] for a in rows])
