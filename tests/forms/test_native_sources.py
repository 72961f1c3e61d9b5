"""Compiled functions from numba and cffi, where these are installed: whole objectives, and what has to stay alive."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from typing import ClassVar

import numpy as np
import pytest
from scipy import LowLevelCallable
from smooth_reference import overlapping

import mdlearn
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.native import NativeFunction
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.testing import CHECKS

# The hinge loss with its corner rounded over the width h = params[0].
SOURCE = """
double value(double z, void *p) {
    double h = *(double *)p, s = 1.0 - z;
    return s <= 0.0 ? 0.0 : s < h ? s * s / (2.0 * h) : s - h / 2.0;
}
double slope(double z, void *p) { double h = *(double *)p, s = 1.0 - z; return s <= 0.0 ? 0.0 : s < h ? -s / h : -1.0; }
double bend(double z, void *p) { double h = *(double *)p, s = 1.0 - z; return s <= 0.0 || s >= h ? 0.0 : 1.0 / h; }
"""
PARTS = ("value", "slope", "bend")
DECLARED = " ".join(f"double {name}(double, void *);" for name in PARTS)


@pytest.fixture
def folder(tmp_path):
    if shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) is None:
        pytest.skip("no C compiler")
    return tmp_path


def from_numba(folder):
    """From h to the three functions."""
    numba = pytest.importorskip("numba")

    def value(z, p):
        h, s = numba.carray(p, 1, np.float64)[0], 1.0 - z
        return 0.0 if s <= 0.0 else s * s / (2.0 * h) if s < h else s - h / 2.0

    def slope(z, p):
        h, s = numba.carray(p, 1, np.float64)[0], 1.0 - z
        return 0.0 if s <= 0.0 else -s / h if s < h else -1.0

    def bend(z, p):
        h, s = numba.carray(p, 1, np.float64)[0], 1.0 - z
        return 0.0 if s <= 0.0 or s >= h else 1.0 / h

    compiled = [numba.cfunc("float64(float64, voidptr)")(part) for part in (value, slope, bend)]
    return lambda h: [NativeFunction(one, [h]) for one in compiled]


def c_library(folder):
    """The source, compiled to a library."""
    (folder / "loss.c").write_text(SOURCE)
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", "loss.so", "loss.c"], cwd=folder, check=True)
    return folder / "loss.so"


def opened(folder):
    """A library that cffi opens, with its FFI."""
    ffi = pytest.importorskip("cffi").FFI()
    ffi.cdef(DECLARED)
    return ffi, ffi.dlopen(str(c_library(folder)))


def built(folder):
    """A module that cffi compiles: its FFI and library."""
    pytest.importorskip("cffi")
    # In a process of its own: setuptools wants to be imported before anything that knows distutils.
    program = (
        "import setuptools, cffi; builder = cffi.FFI(); "
        f"builder.cdef({DECLARED!r}); builder.set_source('_compiled_losses', {SOURCE!r}); print(builder.compile())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, capture_output=True, text=True)
    spec = importlib.util.spec_from_file_location("_compiled_losses", folder / done.stdout.split()[-1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ffi, module.lib


def from_cffi(make):
    def functions(folder):
        ffi, lib = make(folder)
        return lambda h: [NativeFunction(LowLevelCallable(ffi.addressof(lib, part)), [h], owner=lib) for part in PARTS]

    return functions


@pytest.mark.slow
@pytest.mark.parametrize("source", [from_numba, from_cffi(opened), from_cffi(built)], ids=["numba", "dlopen", "module"])
def test_an_objective(source, folder):
    functions = source(folder)
    gc.collect()

    class Rounded(mdlearn.Objective):
        name = "rounded"
        summary = formula = "hinge with a rounded corner"
        parameters: ClassVar = {"C": Parameter(1.0, "weight"), "h": Parameter(0.5, "width", low=0.01)}

        def terms(self, params, total):
            return Terms(loss=GivenLoss(*functions(params["h"])).terms(params["C"]))

    for check in CHECKS:
        check(Rounded)
    X, y = overlapping(80, 3)
    signs = np.where(y > 0, 1.0, -1.0)
    model = mdlearn.fit(Rounded, X, y, C=0.7, h=0.3, bias="none", tol=1e-10)
    short = 1.0 - signs * (X @ model.coef_[0])
    loss = np.where(short < 0.3, np.maximum(short, 0.0) ** 2 / 0.6, short - 0.15).sum()
    objective = model.certificate.objective
    assert objective == pytest.approx(0.5 * model.coef_[0] @ model.coef_[0] + 0.7 * loss, rel=1e-12)
    options = {"solver": "sgd", "solver_options": {"epochs": 200}}
    walked = mdlearn.fit(Rounded, X, y, C=0.7, h=0.3, bias="none", **options).certificate
    assert model.certificate.converged and walked.lower_bound <= objective <= walked.objective <= 1.1 * objective


def test_a_library_of_cffi_stays_loaded(folder):
    ffi, lib = opened(folder)
    with pytest.raises(TypeError, match=r"does not keep its library loaded; give the library as owner=lib$"):
        NativeFunction(LowLevelCallable(lib.slope), [0.5])
    function = NativeFunction(LowLevelCallable(lib.slope), [0.5], owner=lib)
    del ffi, lib
    gc.collect()
    np.testing.assert_array_equal(function(np.array([-1.0, 0.75, 2.0])), [-1.0, -0.5, 0.0])


@pytest.mark.extras
def test_a_python_function_behind_cffi_is_refused():
    ffi = pytest.importorskip("cffi").FFI()
    python = ffi.callback("double(double, void *)", lambda z, data: z)
    for owner in (None, ffi):
        with pytest.raises(TypeError, match="cannot be a Python function behind ctypes or cffi"):
            NativeFunction(LowLevelCallable(python), owner=owner)


def test_an_owner_makes_no_bare_address_acceptable(folder):
    library = ctypes.CDLL(str(c_library(folder)))
    address = ctypes.cast(library.slope, ctypes.c_void_p).value
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_void_p)(address)
    for owner in (None, library):
        with pytest.raises(TypeError, match="a bare address is kept alive by nobody"):
            NativeFunction(LowLevelCallable(function), [0.5], owner=owner)
