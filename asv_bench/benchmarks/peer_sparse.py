"""Linear problems on text-like sparse rows, beside LIBLINEAR as scikit-learn brings it."""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np

import mdlearn

from .contest import COLUMNS, Case, Contest, Line, Rival, certified
from .peer_dense import linear_svc
from .workloads import words

W3, GAP = 100_000, 1e-6


@cache
def text(m):
    """The rows, which several cases share."""
    return words(m, constant=True)


def hinge(m, goal, C=1.0, tolerances=(1e-3, 3e-4, 1e-4), **weights):
    """SVM, or LDM with weights, against LIBLINEAR's SVM at the first tolerance that takes it to the same gap."""
    X, y = text(m)
    bound = mdlearn.fit("svm", X, y, C=C, bias="none", tol=1e-8).certificate.lower_bound
    fit = partial(mdlearn.fit, "ldm" if weights else "svm", X, y, C=C, bias="none", tol=GAP, **weights)
    floor = partial(X.dot, np.ones(X.shape[1]))
    rivals = [linear_svc(X, y, bound, GAP, tolerances, goal, C), Rival("floor", "one pass", floor)]
    return Contest(certified(fit, GAP), rivals)


@dataclass(frozen=True)
class EqualEpochs:
    """The paper's averaged steps and the same without averaging, which is how the authors' program runs.

    It initialises the step at which averaging begins by a constant that it never sets. The ratio is one of objectives,
    after as many epochs each from the same draws.

    Attributes
    ----------
    m, d : int
    C : float
    """

    m: int
    d: int
    C: float

    def lines(self):
        """One line."""
        X, y = words(self.m, self.d)
        weights = {"C": self.C, "lambda1": 2**-4, "lambda2": 2**-4, "bias": "none", "solver": "asgd"}
        ours = mdlearn.fit("ldm", X, y, **weights)
        theirs = mdlearn.fit("ldm", X, y, solver_options={"t0": 2**62}, **weights)
        value, other = ours.certificate.objective, theirs.certificate.objective
        cells = {**dict.fromkeys(COLUMNS, ""), "package": f"**no averaging: objective {other:.6g}**"}
        text = f"`asgd` objective {value:.6g}"
        return [Line(cells, text, f"{ours.certificate.gap:.0e}", value / other, 1.0)]


def beside_steps(m, d, C):
    """The exact engine beside the printed five epochs of averaged steps, which end far above the bound."""
    X, y = words(m, d, constant=True)
    fit = partial(mdlearn.fit, "ldm", X, y, C=C, lambda1=1.0, lambda2=1.0, bias="none")
    exact, steps = certified(partial(fit, tol=GAP), GAP), partial(fit, solver="asgd")
    bound, value = exact().certificate.lower_bound, steps().certificate.objective
    return Contest(exact, [Rival("package", "ASGD as printed", steps, f"{(value - bound) / value:.0e}", ran=True)])


CASES = (
    Case("W3", "svm", partial(hinge, W3, 0.3)),
    Case("W3", "svm, C = 10", partial(hinge, W3, 0.3, C=10.0, tolerances=(1e-5,))),
    Case("W3", "ldm, lambda1 = 1", partial(hinge, W3, 0.5, lambda1=1.0, lambda2=1.0)),
    Case("W3", "ldm, lambda1 = m/16", partial(hinge, W3, 0.5, lambda1=W3 / 16, lambda2=1.0)),
    Case("W3", "ldm, lambda1 = m/4", partial(hinge, W3, 0.5, lambda1=W3 / 4, lambda2=1.0)),
    Case("Authors", "linear ldm, ASGD, C = 1", partial(EqualEpochs, W3, 20_000, 1.0)),
    Case("Authors", "linear ldm, exact, C = 1", partial(beside_steps, W3, 20_000, 1.0)),
    Case("Authors", "linear ldm, exact, C = 10", partial(beside_steps, W3, 20_000, 10.0)),
    Case("Authors", "linear ldm, ASGD, C = 10", partial(EqualEpochs, W3, 20_000, 10.0)),
)
