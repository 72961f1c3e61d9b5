"""The machines that Abe compares, and the values that cross-validation chooses from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

GAMMAS = (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 200.0)
"""Of the kernel exp(-gamma |x - z|^2 / d), d inputs; this library's gamma is that over d."""
C_SVM = (0.1, 1.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 2000.0)
C_ULDM = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1)
FOLDS = 5


@dataclass(frozen=True)
class Machine:
    """An objective as the paper has it.

    Attributes
    ----------
    objective : str
    C : tuple of float
        What cross-validation chooses from.
    options : mapping
        Arguments of `mdlearn.fit` for every point.
    """

    objective: str
    C: tuple[float, ...]
    options: Mapping[str, Any]


MACHINES: dict[str, Machine] = {
    "ULDM": Machine("uldm", C_ULDM, MappingProxyType({"c_scaling": "max_diag"})),
    "ULDM, unscaled C": Machine("uldm", C_ULDM, MappingProxyType({})),
    "LS SVM": Machine("lssvm", C_SVM, MappingProxyType({"bias": "free"})),
    "L1 SVM": Machine("svm", C_SVM, MappingProxyType({"bias": "free"})),
}
"""By the name that the paper prints. Eq. (31) multiplies C of the ULDM by the largest K_ii: of the matrix K of eq.
(27), or, read otherwise, of the kernel matrix, whose diagonal is 1 for an RBF kernel; "unscaled C" is the latter."""
PAPERS_OWN = {name: name.split(",")[0] for name in MACHINES}
"""Which printed machine each one is compared with."""


def grid(machine: Machine, kernel: str, inputs: int, quick: bool) -> dict[str, list[float]]:
    """What cross-validation chooses from: wide kernels and small C first, for ties."""
    step = 3 if quick else 1
    values = {"C": list(machine.C[::step])}
    return values if kernel == "linear" else {"gamma": widths(inputs, quick), **values}


def widths(inputs: int, quick: bool) -> list[float]:
    """Values of this library's gamma."""
    return [gamma / inputs for gamma in GAMMAS[:: 3 if quick else 1]]


def options(machine: Machine, kernel: str) -> dict[str, Any]:
    """Arguments of `mdlearn.fit`; all training rows are the basis of the ULDM, with a linear kernel, too."""
    basis = {"basis": "all"} if machine.objective == "uldm" else {}
    return {"kernel": kernel, **machine.options, **basis}
