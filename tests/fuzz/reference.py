"""What a model's objective is, in extended precision, from SPEC's formulas and the model's public coefficients.

No code of the library takes part, but for `decision_function`, whose values are one of the two answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
import printed

from fuzz.problems import PAIRWISE, inner, laplace, rational, squared

LD = np.longdouble
EPS = np.finfo(LD).eps
GIVEN = 2.0
"""What entries of a given matrix may be off by, in units of its type's precision."""


@dataclass(frozen=True)
class Values:
    """Objectives of one model: the printed one at its coefficients, that of what it predicts, that of w = 0.

    Each has its parts (classes or pairs; one for a joint problem). `predicted` is None for pairs of classes, whose
    decision values are votes; `exact` is None where the library makes the features (l3svm, approximate kernels).
    """

    exact: tuple | None
    predicted: tuple | None
    at_zero: tuple
    noise: float
    """What extended precision may have lost in the sum of `exact`."""


@lru_cache(maxsize=4)
def gram(problem, gamma):
    """Kernel values of all rows by the definition."""
    kernel, A = problem.kernel, problem.X.astype(LD)
    if kernel == "precomputed":
        return A
    if kernel == "rbf":
        return np.exp(-LD(gamma) * ((A[:, None, :] - A[None, :, :]) ** 2).sum(axis=2))
    if kernel in (laplace, rational):
        return kernel(A, A)
    products = A @ A.T
    if kernel == "poly":
        p = problem.kernel_params
        return (LD(gamma) * products + LD(p["coef0"])) ** int(p["degree"])
    if kernel is squared:
        return (products + 1) ** 2
    assert kernel in ("linear", inner)
    return products


def basis_weights(problem, model, indices, c):
    """Square roots of the weights that columns of a basis share, by row; 1 where columns are distinct rows."""
    name, p = problem.objective, model.params
    shared = name == "uldm" and p["basis"] in ("auto", "all") if isinstance(p.get("basis", None), str) else True
    if name == "lsvm":
        shared = not isinstance(p["reduced"], int)
    return np.sqrt(c[indices].astype(LD)) if shared else np.ones(len(indices), LD)


def parts_of(problem, model):
    """(rows, signs, indices of the problem) of every binary problem; None for joint ones."""
    codes, k = problem.known, len(model.classes_)
    known = problem.counts > 0
    if k == 0:  # numbers: one problem, whose z is f - y
        here = np.flatnonzero(known)
        yield here, np.ones(len(here)), 0
    elif k > 2 and model.multiclass in PAIRWISE:
        for p, (i, j) in enumerate(combinations(range(k), 2)):
            here = np.flatnonzero(known & ((codes == i) | (codes == j)))
            yield here, np.where(codes[here] == j, 1.0, -1.0), p
    else:
        here = np.flatnonzero(known)
        for p, c in enumerate([1] if k == 2 else range(k)):
            yield here, np.where(codes[here] == c, 1.0, -1.0), p


def decision_values(problem, model):
    """(F, size, squares, W): values and |w|^2 of every problem p over all rows; `size` bounds what F was summed of."""
    b = model.intercept_.astype(LD)
    indices = model.extras.get("basis_indices_")
    if problem.linear and indices is None:
        W, X = model.coef_.astype(LD), problem.X.astype(LD)
        return W @ X.T + b[:, None], abs(W) @ abs(X.T) + abs(b)[:, None], (W * W).sum(axis=1), W
    A = model.dual_coef_.astype(LD)
    G = gram(problem, model.params.get("gamma"))
    F, size = A @ G, abs(A) @ abs(G)
    if indices is None:
        squares = _lengths(problem, A, G, (A * F).sum(axis=1))
    else:
        each, c = indices if isinstance(indices, tuple) else [indices] * len(A), problem.counts
        squares = np.zeros(len(A), LD)
        for j, (a, i) in enumerate(zip(A, each)):
            if len(i):
                squares[j] = ((a[i] / basis_weights(problem, model, i, c)) ** 2).sum()
            elif problem.linear:
                # A pair of classes with more rows than columns has coordinates and no basis: it predicts by them. One
                # whose turn never came has no basis, too, and w = 0.
                w = model.coef_[j].astype(LD)
                F[j], size[j] = problem.X.astype(LD) @ w, abs(problem.X.astype(LD)) @ abs(w)
                squares[j] = w @ w
    return F + b[:, None], size + abs(b)[:, None], squares, None


def _lengths(problem, A, G, squares):
    """Squared lengths; one that only the rounding of a given matrix makes negative is 0, as in the kernel's own.

    The objective is that of a positive semidefinite matrix which rounds to the given one: the given one may be none.
    """
    if problem.kernel != "precomputed":
        return squares
    roundings = GIVEN * np.finfo(np.float32 if problem.single else float).eps
    least = roundings * (abs(A) @ np.sqrt(np.maximum(np.diagonal(G), 0))) ** 2
    return np.where(-least < squares, np.maximum(squares, 0), squares)


def ridge_of(problem, model, F):
    """|theta|^2 with the smoothness term of l3svm, from what the model shows."""
    if problem.kernel != "linear":
        A = model.dual_coef_.astype(LD)
        return (A * (F - model.intercept_.astype(LD)[:, None])).sum(axis=1)
    theta = model.coef_.astype(LD)
    squares = (theta**2).sum(axis=(1, 2))
    rho, centers = LD(model.params["smoothness"]), model.extras["centers_"].astype(LD)
    K = len(centers)
    if rho > 0 and K > 1:
        D = ((centers[:, None] - centers[None, :]) ** 2).sum(axis=2)
        width = D.sum() / (K * (K - 1))
        S = np.exp(-D / width) if width > 0 else np.ones((K, K), LD)
        for k, other in combinations(range(K), 2):
            squares = squares + rho * S[k, other] * ((theta[:, k] - theta[:, other]) ** 2).sum(axis=1)
    return squares


def scaled_to_feasible(z, square, b, c, p):
    """Objective of a hard margin: at w / min z where a constraint is missed; margins may be longer."""
    low = min(z.min(), LD(1))
    if not low > 0:
        return LD(np.inf), LD(np.inf)
    terms = printed.svm(z / low, square / low**2, c, {"C": LD(0)})
    if "lambda1" in p:
        terms += printed.ldm(z / low, LD(0), c, {**p, "C": LD(0)})
    return sum(terms), sum(abs(t) for t in terms)


def binary(problem, model, z, square, b, W, c, p):
    """(objective, size) of one binary problem at margins z."""
    name, bias = problem.objective, model.bias
    given = {key: LD(v) for key, v in p.items() if isinstance(v, (int, float, LD))}
    whole = square + (b * b if bias == "regularized" else 0)
    if name in ("svm", "ldm") and np.isinf(given["C"]):
        return scaled_to_feasible(z, whole, b, c, given)
    if name == "l3svm":
        slack = np.maximum(0, 1 - z) ** (2 if p["loss"] == "squared_hinge" else 1)
        terms = [whole / 2, given["C"] * printed.mean(slack, c)]
    else:
        terms = getattr(printed, name)(z, whole, c, given)
    if name == "mdlm" and given["beta"] > 0:
        terms = [*terms, printed.penalty(W[None], np.array([b]), bias, given)]
    return sum(terms), sum(abs(t) for t in terms)


def max_diag(problem, model, p, here, signs, c):
    """Largest variance of a signed basis column (SPEC's K_ii); a repeated row has equal columns, not a longer one."""
    indices = model.extras.get("basis_indices_")
    i = () if indices is None else indices[p] if isinstance(indices, tuple) else indices
    if len(i) == 0:
        columns = problem.X[here].astype(LD)
    else:
        columns = gram(problem, model.params.get("gamma"))[np.ix_(here, i)]
    columns = signs[:, None] * columns
    mean = c @ columns / c.sum()
    return (c @ (columns - mean) ** 2 / c.sum()).max()


def objective_at(problem, model, F, squares, W):
    """Parts of the objective and their sizes, for decision values F (p, m)."""
    b, name = model.intercept_.astype(LD), problem.objective
    counts = problem.counts.astype(LD)
    p = dict(model.params)
    if len(model.classes_) > 2 and model.multiclass == "joint":
        here = np.flatnonzero(problem.counts > 0)
        c, codes = counts[here], problem.known[here]
        whole = squares.sum() + ((b * b).sum() if model.bias == "regularized" else 0)
        given = {key: LD(v) for key, v in p.items() if isinstance(v, (int, float))}
        if name in ("ww", "mmlr"):
            value = getattr(printed, name)(F[:, here], codes, whole, c, given)
            return (value,), (abs(value),)
        S = np.where(codes == np.arange(len(F))[:, None], 1.0, -1.0)
        value, size = printed.value(name, F[:, here], S, squares, W, b, c, model.bias, p)
        return (value,), (size,)
    values, sizes = [], []
    for here, signs, j in parts_of(problem, model):
        own = p
        c = counts[here]
        if p.get("c_scaling") == "max_diag":
            own = {**p, "C": p["C"] * max_diag(problem, model, j, here, signs, c)}
        if name in ("ww", "mmlr"):
            # w_0 = -w_1: f is that of the second class.
            both = np.array([-F[j], F[j]])[:, here]
            whole = 2 * (squares[j] + (b[j] * b[j] if model.bias == "regularized" else 0))
            value = getattr(printed, name)(both, (signs > 0).astype(int), whole, c, {k: LD(v) for k, v in p.items()})
            values.append(value)
            sizes.append(abs(value))
            continue
        z = signs * F[j, here] - problem.shift[here]
        value, size = binary(problem, model, z, squares[j], b[j], None if W is None else W[j], c, own)
        values.append(value)
        sizes.append(size)
    return tuple(values), tuple(sizes)


def values_of(problem, model, X=None):
    """Values of a model for its problem.

    Parameters
    ----------
    problem : Problem
    model : Model
        Its parameters and kernel may differ from the problem's, as those of a path's points do.
    X : array or matrix, optional
        Rows in the layout that `decision_function` is to see; those of the problem by default.
    """
    pairs = len(model.classes_) > 2 and model.multiclass in PAIRWISE
    exact = predicted = None
    noise = 0.0
    if "approximation" in model.params:
        W = model.coef_.astype(LD)
        F, squares, W = np.zeros((len(W), len(problem.codes)), LD), (W * W).sum(axis=1), None
        if not pairs:
            F = _columns(model, problem.X if X is None else X)
            predicted, _ = objective_at(problem, model, F, squares, W)
    elif problem.objective == "l3svm":
        F = _columns(model, problem.X if X is None else X)
        squares, W = ridge_of(problem, model, F), None
        if problem.single:  # coefficients are fitted along other axes, and rounded once more where they are shown
            noise = 0.5 * float(np.finfo(np.float32).eps * abs(squares).sum())
        predicted, _ = objective_at(problem, model, F, squares, W)
    else:
        F, size, squares, W = decision_values(problem, model)
        exact, _ = objective_at(problem, model, F, squares, W)
        noise = _noise(problem, model, F, size, squares, W, exact) if np.isfinite(float(sum(exact))) else 0.0
        if not pairs:
            seen = _columns(model, problem.X if X is None else X)
            predicted, _ = objective_at(problem, model, seen, squares, W)
    none = np.zeros_like(F), np.zeros_like(squares), None if W is None else np.zeros_like(W)
    zero, _ = objective_at(problem, _WithoutIntercept(model), *none)
    return Values(exact, predicted, zero, noise)


def hidden(problem, model):
    """What roundings of kernel values may hide of the objectives at a model's coefficients, part by part.

    Some matrix whose entries differ by these roundings is that of the kernel. Decision values are moved by what they
    make, all towards or all away from the labels, or all one way: the objective is known no better than that.
    """
    if problem.linear or model.extras.get("basis_indices_") is not None or "approximation" in model.params:
        return 0.0
    F, _, squares, W = decision_values(problem, model)
    G, A = gram(problem, model.params.get("gamma")), abs(model.dual_coef_.astype(LD))
    lengths = np.sqrt(np.maximum(np.diagonal(G), 0))
    roundings = GIVEN * np.finfo(np.float32 if problem.single and problem.kernel == "precomputed" else float).eps
    off = roundings * (A @ lengths)[:, None] * lengths
    longer = squares + (A * off).sum(axis=1)
    here, _ = objective_at(problem, model, F, squares, W)
    towards = np.where(problem.codes == np.arange(len(F))[:, None] + (len(F) == 1), 1.0, -1.0)
    if len(model.classes_) == 0:
        towards = np.sign(problem.shift - F)
    moved = [objective_at(problem, model, F + s * off, longer, W)[0] for s in (1.0, -1.0, towards, -towards)]
    return float(max(abs(v - u) for one in moved for v, u in zip(one, here)))


class _WithoutIntercept:
    """The same model with intercepts of 0."""

    def __init__(self, model):
        self.params, self.bias, self.multiclass, self.extras = model.params, model.bias, model.multiclass, model.extras
        self.classes_, self.intercept_ = model.classes_, np.zeros_like(model.intercept_)


def _columns(model, X):
    f = model.decision_function(X)
    return (f[None] if f.ndim == 1 else f.T).astype(LD)


def _noise(problem, model, F, size, squares, W, exact):
    """How far rounding of extended precision may move the objective: it is asked for values moved by as much."""
    step = 8 * EPS * size * problem.X.shape[1]
    # A squared length is a sum over decision values: rounding of these counts once more by every coefficient.
    lost = (abs(model.dual_coef_) * step).sum(axis=1) if W is None and len(model.dual_coef_) == len(F) else 0.0
    moved = [objective_at(problem, model, F + s * step, squares + s * lost, W)[0] for s in (1, -1)]
    return float(max(abs(sum(v) - sum(exact)) for v in moved) + EPS * 1e2 * abs(sum(exact)))
