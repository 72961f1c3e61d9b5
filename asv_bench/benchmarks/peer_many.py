"""A million rows, and ten classes under one penalty."""

from functools import partial

import numpy as np

import mdlearn

from .contest import Case, Contest, Rival, certified, reaching
from .memory import ExtraMemory
from .methods import apg_rows, newton_squared_hinge, two_passes
from .workloads import clusters, several_classes

GAP = 1e-6


def newton(m):
    """LSVM by Newton's method against the same in NumPy and LinearSVC's primal method."""
    from sklearn.svm import LinearSVC

    X, y = clusters(m)
    nu = 1.0 / m
    reference = partial(newton_squared_hinge, X, y, C=nu / 2, tol=GAP)
    told = reaching(reference, lambda found: found[2], "the NumPy Newton", GAP)
    best = newton_squared_hinge(X, y, C=nu / 2, tol=1e-12)[1]
    peer = LinearSVC(C=nu / 2, loss="squared_hinge", dual=False, fit_intercept=False, tol=1e-4, max_iter=1000)
    w = peer.fit(X, y).coef_[0]
    far = (0.5 * w @ w + nu / 2 * (np.maximum(0.0, 1.0 - y * (X @ w)) ** 2).sum() - best) / best
    fit = partial(mdlearn.fit, "lsvm", X, y, nu=nu, bias="none", solver="newton", tol=GAP)
    rivals = (
        Rival("package", "LinearSVC, primal", partial(peer.fit, X, y), f"{far:.0e}", ran=True),
        Rival("numpy", "Newton", reference, told, 0.7, ran=True),
        Rival("floor", "X'X", partial(np.matmul, X.T, X)),
    )
    return Contest(certified(fit, GAP), rivals)


def fixed_point(m):
    """The paper's fixed point to its own stop, against two bare passes per iteration."""
    X, y = clusters(m)
    options = {"solver": "smw", "solver_options": {"stop": "step"}}
    fit = partial(mdlearn.fit, "lsvm", X, y, nu=1.0 / m, bias="none", **options)
    model = fit()
    floor = partial(two_passes, X, y, model.n_iter)
    note = f"{model.n_iter} iterations"
    return Contest(fit, [Rival("floor", "X'X and two passes an iteration", floor, "", 1.0)], note=note)


def extra_memory(m, solver, **settings):
    """What a fit takes beyond the rows."""
    X, y = clusters(m)
    return ExtraMemory(X, y, {"objective": "lsvm", "nu": 1.0 / m, "bias": "none", "solver": solver, **settings}, 0.1)


def sparse_rows(m, d, k):
    """L2,1 over several classes against accelerated gradients in NumPy, which know the optimum."""
    X, codes = several_classes(m, d, k)
    weights = {"alpha": 5.0, "lambda1": 0.1, "lambda2": 0.0, "beta": 0.01}
    fit = partial(mdlearn.fit, "mdlm", X, codes, bias="none", ridge=0.0, **weights)
    bound = fit(tol=1e-9).certificate.lower_bound
    reference = partial(apg_rows, X, codes, best=bound, tol=GAP, **weights)
    told = reaching(reference, lambda found: (found[1] - bound) / found[1], "the NumPy gradients", GAP)
    W = np.zeros((d, k))
    rivals = (
        Rival("numpy", "APG", reference, told, 0.7, ran=True),
        Rival("floor", "two products", lambda: X.T @ (X @ W)),
    )
    return Contest(certified(fit, GAP), rivals)


MILLION = 1_000_000
CASES = (
    Case("W5", "lsvm, Newton", partial(newton, MILLION)),
    Case("W5", "lsvm, fixed point", partial(fixed_point, MILLION)),
    Case("W5", "extra memory, Newton", partial(extra_memory, MILLION, "newton")),
    Case("W5", "extra memory, fixed point", partial(extra_memory, MILLION, "smw", solver_options={"stop": "step"})),
    Case("W6", "mdlm, beta = 0.01", partial(sparse_rows, 10_000, 500, 10)),
)
