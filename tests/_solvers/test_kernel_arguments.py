"""Every compiled function, called with arrays of exactly the size it needs, and with each of them one entry too short.

The first must do, the second raise ValueError before any loop or use the shorter array as it is. On the build with
sanitizers (`.ci/sanitize`) nothing may be read or written outside of the arrays. Column indices of CSR rows are looked
at once, at the door: vectors over columns are left out here (`VOUCHED`).
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest
from compiled_calls import CASES

import mdlearn._solvers as package

VOUCHED = {"csr.dot": "w", "csr.write": "out", "csr.adjoint": "out", "csr.squares": "weights",
           "csr.column_squares": "out", "csr.columns": "T", "centred.sweep": "u", "sgd.walk_csr": "u",
           "products.add_sparse": "M", "dual_descent.sparse": "w", "dual_descent.sparse_passes": "w",
           "dual_descent.sparse_survey": "w", "dual_descent.sparse_sweeps": "w"}  # fmt: skip


SMALLER = {
    "point_values.at_multipliers w 0", "point_values.at_multipliers terms 0",
    "apg.slopes terms 0", "apg.bends terms 0", "apg.shrink V 1", "blocks.factor B 1", "hinges.along terms 1",
    "products.add_dense B 0", "sgd.walk_dense terms 1", "sgd.walk_csr terms 1", "cd.sweep order 0",
    "narrow_scatter.columns X 0", "narrow_scatter.columns X 1",
    "cd.sweep dense order 0", "centred.sweep order 0", "centred.sweep_blocks order 0", "csr.gather X 1",
    "reading.row_squares X 1", "products.write_symmetric values 0", "products.write_symmetric values 1",
    "gaussian.exponentials K 0", "gaussian.exponentials K 1", "known_rows.SelectedRows index 0",
    "class_pairs.ascend levels 0",
}  # fmt: skip
"""What is a smaller problem when it is shorter: fewer terms, columns, rows to add, or visits."""


def exactly(value):
    """An array in a block of memory of its own, as long as it is."""
    return np.array(value) if isinstance(value, np.ndarray) else value


def shorter(case):
    """(name, axis) of every array whose length a function has to see to."""
    for name, value in CASES[case][1].items():
        if isinstance(value, np.ndarray) and VOUCHED.get(case) != name:
            yield from ((name, axis) for axis in range(value.ndim))


@pytest.mark.parametrize("case", CASES)
def test_arrays_of_the_right_size(case):
    function, given = CASES[case]
    given = {name: exactly(value) for name, value in given.items()}
    function(**given)
    floats = [value for value in given.values() if isinstance(value, np.ndarray) and value.dtype.kind == "f"]
    assert all(np.isfinite(value).all() for value in floats)


@pytest.mark.parametrize("case", CASES)
def test_an_array_that_is_too_short(case):
    """Refused, or the shorter array is a smaller problem of its own."""
    function = CASES[case][0]
    for name, axis in shorter(case):
        given = {key: exactly(value) for key, value in CASES[case][1].items()}
        whole = given[name]
        given[name] = exactly(np.ascontiguousarray(whole.take(range(whole.shape[axis] - 1), axis=axis)))
        try:
            function(**given)
        except ValueError as error:
            assert "\n" not in str(error) and "buffer" not in str(error).lower(), (name, axis, error)
        else:
            assert f"{case} {name} {axis}" in SMALLER, f"{name} {axis} was not missed"


def test_every_compiled_function_is_here():
    modules = sorted(path.stem for path in Path(package.__file__).parent.glob("*.pyi"))
    public = set()
    for stem in modules:
        module = importlib.import_module(f"mdlearn._solvers.{stem}")
        public |= {f"{stem}.{name}" for name, one in vars(module).items() if inspect.isroutine(one) and name[0] != "_"}
    called = {f"callbacks.{name}" for name in ("evaluate", "losses", "slopes", "bends")}
    elsewhere = {*called, "native_losses.bound", "native_losses.estimate"}
    assert public - set(CASES) == elsewhere, "tests/forms has these: test_native.py and test_native_sums.py"
