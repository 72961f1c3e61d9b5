"""What a plugin costs: an objective of a package, and a compiled loss, beside the same thing written into the core."""

import ctypes
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np
from scipy import LowLevelCallable

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.native import NativeFunction
from mdlearn.objectives.base import Terms
from mdlearn.plugins.registry import registry
from mdlearn.solvers.stochastic.task import StochasticTask

from .references import paired_ratio
from .workloads import gaussians, ringnorm, words

PLUGIN = """
import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms


class Band(mdlearn.Objective):
    name = "band_of_a_plugin"
    summary = "the loss of odm, of a class outside mdlearn"
    formula = "1/2 |w|^2 + lam/(m (1-theta)^2) sum [max(0, 1-theta-z)^2 + mu max(0, z-1-theta)^2]"
    parameters = {
        "lam": Parameter(lambda params, m: m, "weight of the mean loss"),
        "mu": Parameter(0.5, "weight of margins beyond the band"),
        "theta": Parameter(0.2, "half the width of the band", high=0.999),
    }

    def terms(self, params, total):
        theta = params["theta"]
        weight = params["lam"] / (total * (1.0 - theta) ** 2)
        beyond = HingeTerm(weight * params["mu"], -1, 1.0 + theta, 2)
        return Terms(loss=(HingeTerm(weight, 1, 1.0 - theta, 2), beyond))


@mdlearn.hookimpl
def mdlearn_objectives():
    return [Band]
"""
"""The module of a plugin, whose objective is `odm` of mdlearn under another name."""
PAIRS = 31


@cache
def installed():
    """Make the plugin known to this process by its entry point, as pip would, before mdlearn looks for plugins."""
    folder = tempfile.TemporaryDirectory()
    info = Path(folder.name) / "band_plugin-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: band-plugin\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[mdlearn]\nmain = band_plugin\n")
    (Path(folder.name) / "band_plugin.py").write_text(PLUGIN)
    sys.path.append(folder.name)
    return folder  # kept, for it ends with its owner


class ObjectiveThroughAPlugin:
    """CPU time of a fit of a plugin's objective, in units of a fit of `odm`, the same loss in the core.

    Both pass every step from the name to the model. Answers of a plugin's class are checked, and errors inside it get a
    note; a factor of 1 says that this, and where a class is from, cost nothing.
    """

    params = ["dense 200 x 11", "dense 20000 x 51", "kernel 400", "sparse 4000 x 20000"]
    param_names = ["shape"]

    def setup(self, shape):
        installed()
        if "band_of_a_plugin" not in registry().objectives:
            raise RuntimeError("the plugin was not found; see `python -m mdlearn plugins`")
        kind, _, size = shape.partition(" ")
        m, *d = (int(part) for part in size.split(" x "))
        self.X, self.y = {"dense": gaussians, "kernel": ringnorm, "sparse": words}[kind](m, *d)
        self.kernel = "rbf" if kind == "kernel" else "linear"
        self.fits = {200: 20, 400: 4}.get(m, 1)  # short fits are timed several at a time

    def fit(self, name):
        for _ in range(self.fits):
            model = mdlearn.fit(name, self.X, self.y, kernel=self.kernel, n_threads=1)
        return model.certificate.objective

    def track_ratio(self, shape):
        if self.fit("band_of_a_plugin") != self.fit("odm"):
            raise RuntimeError("the two objectives differ")
        return paired_ratio(lambda: self.fit("band_of_a_plugin"), lambda: self.fit("odm"), PAIRS, process_time)

    track_ratio.unit = "times the same in the core"


# Hinge with the corner rounded over 1e-3; (1 - z)^2 for z < 1; ln(1 + exp(-z)).
SOURCE = """
#include <math.h>
double hinge_value(double z, void *p) {
    double h = *(double *)p, s = 1.0 - z;
    return s <= 0.0 ? 0.0 : s < h ? s * s / (2.0 * h) : s - h / 2.0;
}
double hinge_slope(double z, void *p) {
    double h = *(double *)p, s = 1.0 - z;
    return s <= 0.0 ? 0.0 : s < h ? -s / h : -1.0;
}
double hinge_bend(double z, void *p) {
    double h = *(double *)p, s = 1.0 - z;
    return s <= 0.0 || s >= h ? 0.0 : 1.0 / h;
}
double squared_value(double z, void *p) { double s = 1.0 - z; return s <= 0.0 ? 0.0 : s * s; }
double squared_slope(double z, void *p) { double s = 1.0 - z; return s <= 0.0 ? 0.0 : -2.0 * s; }
double squared_bend(double z, void *p) { return z < 1.0 ? 2.0 : 0.0; }
double hinge_conjugate(double s, void *p) { return s + 0.5 * *(double *)p * s * s; }
double squared_conjugate(double s, void *p) { return s + 0.25 * s * s; }
double logistic_conjugate(double s, void *p) {
    return (s < 0.0 ? -s * log(-s) : 0.0) + (s > -1.0 ? (1.0 + s) * log1p(s) : 0.0);
}
double logistic_value(double z, void *p) { return (z < 0.0 ? -z : 0.0) + log1p(exp(-fabs(z))); }
double logistic_slope(double z, void *p) { return -1.0 / (1.0 + exp(z)); }
double logistic_bend(double z, void *p) { double e = exp(-fabs(z)); return e / ((1.0 + e) * (1.0 + e)); }
"""


SOURCE_PARAMS = {"hinge": [1e-3], "squared": [], "logistic": []}


@cache
def compiled_losses(conjugate=True):
    """The losses of the source, by name; NotImplementedError, which skips, without a C compiler."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "losses.c", Path(folder) / "losses.so"
        source.write_text(SOURCE)
        compiler = (sysconfig.get_config_var("CC") or "cc").split()
        try:
            subprocess.run([*compiler, "-O2", "-shared", "-fPIC", "-o", target, source, "-lm"], check=True)
        except (OSError, subprocess.CalledProcessError):
            raise NotImplementedError("no C compiler") from None
        library = ctypes.CDLL(str(target))

    def function(name, params):
        found = library[name]
        found.restype, found.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_void_p]
        return NativeFunction(LowLevelCallable(found), params)

    def loss(name, params, parts):
        return GivenLoss(*(function(f"{name}_{part}", params) for part in parts))

    parts = ("value", "slope", "bend", "conjugate")[: 4 if conjugate else 3]
    return {name: loss(name, params, parts) for name, params in SOURCE_PARAMS.items()}


def declared_loss(name):
    """The declared term of that name, which a loss of the source is compared with."""
    if name == "logistic":
        return LogisticTerm(1.0, threshold=0.0)
    return HingeTerm(1.0, power=2 if name == "squared" else 1)


class NativeAgainstBuiltIn:
    """CPU time of stochastic steps at d = 10 with a compiled loss, in units of those with the declared one.

    "steps" are the compiled steps alone, on rows drawn before; "fit" is all of `mdlearn.fit`, certificates included.
    """

    params = [["hinge", "squared", "logistic"], ["steps", "fit"]]
    param_names = ["loss", "what"]

    def setup(self, loss, what):
        native = compiled_losses()[loss].terms(1.0)
        X, y = gaussians(20_000, 10)
        call = {"steps": self.steps, "fit": self.fitted}[what]
        self.ours, self.reference = call(X, y, native), call(X, y, (declared_loss(loss),))

    def steps(self, X, y, terms):
        column = Column(y, np.ones(y.size), 0.0, 0.0, terms)
        task = StochasticTask(MarginForm(LinearFeatures(DenseRows(X)), (column,), "none"), column)
        i, j = np.random.default_rng(0).integers(0, y.size, (2, 400_000))

        def run():
            task.run(task.start(0.01, y.size), i, j)

        return run

    def fitted(self, X, y, terms):
        class Loss(mdlearn.Objective):
            name = "loss"

            def terms(self, params, total):
                return Terms(loss=terms)

        options = {"epochs": 20, "eta0": 0.01}
        return lambda: mdlearn.fit(Loss, X, y, solver="sgd", bias="none", solver_options=options, n_threads=1)

    def track_ratio(self, loss, what):
        return paired_ratio(self.ours, self.reference, PAIRS, process_time)

    track_ratio.unit = "times the declared loss"


class NativeFits:
    """CPU time of `mdlearn.fit` with a compiled loss, in units of that with the declared one.

    "conjugate": the loss brings a compiled f*; "without": margins of slopes are looked up. "hinge" has a rounded corner
    beside a declared hinge without one, for stochastic steps alone; `newton-cg` takes a kernel and few rows.
    """

    params = [
        ["hinge", "squared", "logistic"],
        ["newton", "newton-cg", "asgd", "sgd"],
        ["conjugate", "without"],
        ["300 x 8", "1000 x 10", "5000 x 100", "20000 x 10"],
    ]
    param_names = ["loss", "solver", "what", "shape"]

    def setup(self, loss, solver, what, shape):
        m, d = (int(part) for part in shape.split(" x "))
        if (loss == "hinge" and "newton" in solver) or (solver == "newton-cg" and m > 1000):
            raise NotImplementedError("no declared loss to compare with, or long fits")
        native = compiled_losses(what == "conjugate")[loss].terms(1.0)
        X, y = gaussians(m, d)
        self.ours, self.reference = (fit_of(X, y, terms, solver) for terms in (native, (declared_loss(loss),)))

    def track_ratio(self, loss, solver, what, shape):
        return paired_ratio(self.ours, self.reference, PAIRS, process_time)

    track_ratio.unit = "times the declared loss"


class RowTermsUnused:
    """CPU time of a fit whose objective has `row_terms` that say nothing, in units of one that has none."""

    params = ["newton", "asgd", "cd"]
    param_names = ["solver"]

    def setup(self, solver):
        X, y = gaussians(1000, 10)
        terms = (HingeTerm(1.0, power=2),)
        self.ours, self.reference = (fit_of(X, y, terms, solver, by_row) for by_row in (True, False))

    def track_ratio(self, solver):
        return paired_ratio(self.ours, self.reference, PAIRS, process_time)

    track_ratio.unit = "times without row_terms"


def fit_of(X, y, terms, solver, by_row=False):
    """A call that fits an objective of these terms; `by_row`: it has `row_terms`, which return None."""

    class Loss(mdlearn.Objective):
        name = "loss"

        def terms(self, params, total):
            return Terms(loss=terms)

    class ByRow(Loss):
        def row_terms(self, data, params):
            return None

    kernel = "rbf" if solver == "newton-cg" else "linear"
    return lambda: mdlearn.fit(ByRow if by_row else Loss, X, y, solver=solver, kernel=kernel, bias="none", n_threads=1)
