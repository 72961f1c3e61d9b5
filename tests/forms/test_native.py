"""Compiled functions of the margin: what they compute, what the stochastic steps make of them, and what is refused."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import sysconfig
import weakref
from typing import ClassVar

import numpy as np
import pytest
from scipy import LowLevelCallable, sparse
from smooth_reference import overlapping

import mdlearn
from mdlearn._solvers.callbacks import Callback, evaluate
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms import native
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.native import NativeFunction
from mdlearn.forms.row_terms import RowTerms
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.solvers.stochastic import task as sgd_task

# (z - p)^2 with p = params[0], and a few with other signatures.
SOURCE = """
double value(double z, void *data) { double t = z - ((double *)data)[0]; return t * t; }
double slope(double z, void *data) { return 2.0 * (z - ((double *)data)[0]); }
double bend(double z, void *data) { return 2.0; }
double missing(double z, void *data) { return data == 0 ? 1.0 : 0.0; }
double alone(double z) { return z; }
"""
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_void_p)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    if shutil.which(compiler[0]) is None:
        pytest.skip("no C compiler")
    (folder / "loss.c").write_text(SOURCE)
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", "loss.so", "loss.c"], cwd=folder, check=True)
    return folder / "loss.so"


@pytest.fixture
def taken(library):
    """From a name in the library to a NativeFunction."""

    def take(name, params=()):
        function = getattr(ctypes.CDLL(str(library)), name)
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_void_p]
        return NativeFunction(LowLevelCallable(function), params)

    return take


@pytest.fixture
def square(taken):
    """The loss (z - 1)^2."""
    return GivenLoss(*(taken(name, [1.0]) for name in ("value", "slope", "bend")))


def test_values_at_many_margins(taken, monkeypatch):
    monkeypatch.setattr(native, "MARGINS_PER_CALL", 7)
    t = np.linspace(-3.0, 3.0, 41)
    np.testing.assert_allclose(taken("slope", [0.5])(t[::2]), 2.0 * (t[::2] - 0.5), rtol=1e-15)
    assert taken("missing")(t).all() and not taken("missing", [0.0])(t).any(), "no parameters: a null pointer"


def test_parameters_and_owner_are_kept(taken, library):
    params = np.array([0.5])
    function = taken("slope", params)
    params[0] = 99.0
    gc.collect()
    assert function(np.array([2.0]))[0] == 3.0

    class Compiled:  # what numba.cfunc returns has both
        def __init__(self):
            self.library = ctypes.CDLL(str(library))
            self.address = ctypes.cast(self.library.slope, ctypes.c_void_p).value
            self.ctypes = FUNCTION(self.address)

    owner = Compiled()
    seen, function = weakref.ref(owner), NativeFunction(owner, [0.5])
    callback = function.callback
    del owner, function
    gc.collect()
    assert seen() is not None, "the pointer's holder keeps the owner"
    out = np.empty(1)
    evaluate(callback, np.array([2.0]), out)
    assert out[0] == 3.0
    del callback
    gc.collect()
    assert seen() is None


def test_a_capsule_of_a_cython_module():
    module = pytest.importorskip("scipy._lib._ccallback_c")
    if "sine" not in getattr(module, "__pyx_capi__", {}):
        pytest.skip("this SciPy has no such function")
    t = np.linspace(-3.0, 3.0, 41)
    np.testing.assert_allclose(NativeFunction(LowLevelCallable.from_cython(module, "sine"))(t), np.sin(t), rtol=1e-14)


def walked(A, y, terms, by_row=None):
    rows = CsrRows(A) if sparse.issparse(A) else DenseRows(A)
    column = Column(y, np.ones(len(y)), 0.6, 0.2, terms, by_row=by_row)
    task = sgd_task.StochasticTask(MarginForm(LinearFeatures(rows), (column,), "regularized"), column)
    i, j = np.random.default_rng(3).integers(0, len(y), (2, 400))
    track = task.start(0.05, 100)
    task.run(track, i, j)
    return track.current(), task.safe_step()


@pytest.mark.parametrize("differs", [False, True], ids=["alike", "by row"])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, sparse.csr_matrix], ids=["dense", "float32", "CSR"])
def test_steps_are_those_of_the_same_loss_declared(square, kind, differs):
    X, y = overlapping(50, 4, seed=2)
    y, declared = np.where(y > 0, 1.0, -1.0), (HingeTerm(0.7, 1, 1.0, 2), HingeTerm(0.7, -1, 1.0, 2))
    hinge = (HingeTerm(0.3),)
    own = np.random.default_rng(4).uniform(0.1, 2.0, (4, 50))[[0, 0, 1, 2, 2, 3]]  # both sides of the square alike
    by_row = RowTerms(own[:3], own[3:] - 1.0) if differs else None
    given = walked(kind(X), y, square.terms(0.7) + hinge, by_row)
    expected = walked(kind(X), y, declared + hinge, by_row)
    assert square.native is not None and np.abs(expected[0]).max() > 0.1
    np.testing.assert_allclose(given[0], expected[0], rtol=1e-10, atol=1e-13)
    assert given[1] == pytest.approx(expected[1])


def objective_of(loss):
    class Native(mdlearn.Objective):
        name = "native"
        summary = formula = "a native loss"
        parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}

        def terms(self, params, total):
            return Terms(loss=loss.terms(params["C"]))

    return Native


@pytest.mark.parametrize("solver", ["sgd", "asgd"])
def test_a_fit_and_its_certificate(square, solver):
    X, y = overlapping(300, 4)
    best = mdlearn.fit("lssvm", X, y, C=0.02, bias="regularized", tol=1e-12).certificate.objective
    full = mdlearn.fit(objective_of(square), X, y, C=0.01, bias="regularized", tol=1e-12)
    assert full.solver == "newton" and full.certificate.converged
    settings = {"C": 0.01, "bias": "regularized", "solver": solver, "solver_options": {"epochs": 60}}
    certificate = mdlearn.fit(objective_of(square), X, y, **settings).certificate
    assert certificate.lower_bound <= full.certificate.objective <= certificate.objective
    assert certificate.gap < 0.05
    assert full.certificate.objective == pytest.approx(best, rel=1e-10)


def test_what_runs_python_or_has_no_owner_is_refused(library):
    thunk, known = FUNCTION(lambda z, data: z), ctypes.CDLL(str(library))
    known.slope.restype, known.slope.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_void_p]
    known.alone.restype, known.alone.argtypes = ctypes.c_double, [ctypes.c_double]
    address = ctypes.cast(thunk, ctypes.c_void_p).value
    number = ctypes.pointer(ctypes.c_double(1.0))
    python, bare = "cannot be a Python function behind ctypes or cffi", "a bare address is kept alive by nobody"
    for function, told in (
        (LowLevelCallable(thunk), python),
        (LowLevelCallable(ctypes.cast(thunk, FUNCTION)), python),
        (LowLevelCallable(LowLevelCallable(thunk)), python),
        (LowLevelCallable(FUNCTION(address)), bare),
        (LowLevelCallable(known.alone), r"needs the signature 'double \(double, void \*\)'; this one has"),
        (LowLevelCallable(known.slope, ctypes.cast(number, ctypes.c_void_p)), "give its numbers as params"),
        (thunk, "needs to be a scipy.LowLevelCallable"),
        (np.sin, "needs to be a scipy.LowLevelCallable"),
    ):
        with pytest.raises(TypeError, match=told):
            NativeFunction(function)
    for params in ([np.nan], 3.0, [[1.0]]):
        with pytest.raises(ValueError, match="params of a native function need to be a list of finite numbers"):
            NativeFunction(LowLevelCallable(known.slope), params)


def test_the_kernel_checks_its_arguments(taken):
    with pytest.raises(TypeError, match="needs a capsule named"):
        Callback(object(), np.ones(1), None)
    with pytest.raises(ValueError, match="differ in length"):
        evaluate(taken("bend").callback, np.ones(3), np.ones(2))
