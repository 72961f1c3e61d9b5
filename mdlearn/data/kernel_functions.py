"""The base class of kernels that plugins bring, and the rows of those that compare objects of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.rows.object_rows import ObjectRows
from mdlearn.errors import ErrorNotes


class KernelFunction:
    """Base class of the kernels that plugins bring: declare `name`, `summary` and `parameters`, and write `values`.

    Attributes
    ----------
    name : str
        The name users give as ``kernel=``.
    summary : str
        One line, best the formula.
    parameters : mapping of str to Parameter
        Declared as those of an objective (see `mdlearn.extend.Parameter`); users give them to `mdlearn.fit`.
    rows : {"numbers", "any"}
        "any": X is a list of objects of any kind (strings, sequences, graphs), and `values` gets lists of them.
    examples : sequence
        With ``rows = "any"``: ten or more different objects, which the checks of `mdlearn.testing` try the kernel on.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    parameters: ClassVar[Mapping[str, Any]] = {}
    rows: ClassVar[str] = "numbers"
    examples: ClassVar[Any] = ()

    def values(self, params: dict[str, Any], A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return k(a, b) for every row a of A and b of B.

        Parameters
        ----------
        params : dict
            A number for every declared parameter.
        A, B : ndarray of shape (n, d) and (m, d), float64
            Blocks of rows, to be read only; sparse rows come as dense blocks of about 8 MB.

        Returns
        -------
        ndarray of shape (n, m)
            Finite numbers. k needs to be symmetric and positive semidefinite.
        """
        raise NotImplementedError

    def key(self, row: Any) -> Any:
        """Return what two objects are equal by, best something that can be hashed and sorted; here: the object.

        Parameters
        ----------
        row : object

        Returns
        -------
        object
        """
        return row

    def encoded(self, rows: list[Any]) -> Mapping[str, Any]:
        """Return what a model file is to hold of objects: arrays of numbers and plain values by name.

        Parameters
        ----------
        rows : list
            Objects that predictions need.

        Returns
        -------
        mapping

        Raises
        ------
        ValueError
            Here: no way to store them is known.
        """
        raise ValueError(
            f"kernel {self.name!r} does not say how a file holds its rows; write its methods encoded and decoded"
        )

    def decoded(self, values: dict[str, Any]) -> list[Any]:
        """Return the objects of which `encoded` made the values that a file holds; a ValueError says what is wrong.

        Parameters
        ----------
        values : dict

        Returns
        -------
        list
        """
        raise NotImplementedError


def kernel_function_takes_objects(kernel: Any) -> bool:
    """Whether a kernel, as `make_kernel` takes it, compares objects of any kind."""
    return isinstance(kernel, type) and issubclass(kernel, KernelFunction) and kernel.rows == "any"


def kernel_function_rows(cls: type[KernelFunction], X: Any) -> ObjectRows:
    """Return rows of the objects that a plugin's kernel compares."""
    with ErrorNotes(cls, "kernel", "key"):
        return ObjectRows.of(X, cls().key, f"kernel {cls.name!r}")
