"""Random models whose files the checker has formulas for, and the same files with one number changed.

Whether a change of a parameter or an intercept says anything else is judged by `printed`, in extended precision: C of
rows that all have their margin, a constant in a kernel beside a free bias, or an intercept within an interval of best
ones leave every statement of the file true.
"""

import numpy as np
from persistence_cases import opened, sealed
from printed import LD, signs, value

import mdlearn

OBJECTIVES = ("svm", "ldm", "lsvm", "lssvm", "lsldm", "l2lr", "mlr")
LEAST_CHANGE = 1e-8
"""Change of the objective, as a share of its terms, below which a number says nothing else."""


def drawn(rng, kinds=(None, None, None)):
    """(model, X, y, weights or None) of random numbers; `kinds`: objective, kernel and bias, None for a random one."""
    ways = OBJECTIVES, ("linear", "rbf", "poly"), ("none", "regularized", "free")
    name, kernel, bias = (kind or str(rng.choice(way)) for kind, way in zip(kinds, ways))
    kernel = "linear" if name in ("l2lr", "mlr") else kernel
    m, d, k = int(rng.integers(12, 90)), int(rng.integers(1, 6)), 2 if rng.random() < 0.7 else 3
    X = rng.normal(size=(m, d)) * 10 ** rng.uniform(-1, 1) + rng.normal() * rng.integers(2)
    X = X.astype(np.float32) if rng.random() < 0.1 else X
    score = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std() + 0.7 * rng.normal(size=m)
    y = np.digitize(score, [0.0] if k == 2 else [-0.5, 0.5])
    y[:k] = range(k)
    given = parameters(rng, name) | {"bias": bias, "kernel": kernel, "tol": 10 ** rng.uniform(-9, -2)}
    given["tol"] = 1e-6 if rng.random() < 0.7 else given["tol"]
    if kernel != "linear":
        given["gamma"] = 10 ** rng.uniform(-1.5, 0.5) / float(X.var()) / d
    if kernel == "poly":
        given |= {"degree": int(rng.integers(1, 4)), "coef0": float(rng.random())}
    weights = None
    if rng.random() < 0.15:
        weights = rng.integers(0, 4, m).astype(float)
        weights[:k] = 1.0
    return mdlearn.fit(name, X, y, sample_weight=weights, **given), X, y, weights


def parameters(rng, name):
    """Random parameters of an objective."""
    C = 10 ** rng.uniform(-2, 2)
    given = {"lsvm": {"nu": C}, "l2lr": {"lam": 10 ** rng.uniform(-4, 0)}}.get(name, {"C": C})
    if name == "mlr":
        given = {"lam": 10 ** rng.uniform(-4, 0), "alpha": 10 ** rng.uniform(0, 1)}
    if name == "ldm":
        given["lambda1"] = 10 ** rng.uniform(-2, 3)
        given["lambda2"] = given["lambda1"] * rng.random() / 2
    if name == "lsldm":
        given |= {"lambda1": 10 ** rng.uniform(-2, 1), "lambda2": 10 ** rng.uniform(-2, 3)}
    return given


def content_of(model, folder):
    """Header and arrays of a model's file."""
    model.save(folder / "whole.npz")
    return opened((folder / "whole.npz").read_bytes())


def places(header, arrays):
    """Names of the numbers that a file states: values of the certificate, parameters, arrays of the model."""
    found = ["objective", "lower_bound"] + ["gap"] * (header["certificate"]["gap"] > 0)
    found += [name for name in ("coef", "intercept", "dual_coef", "rows", "norms") if np.any(arrays.get(name, 0))]
    return found + [name for name, one in header["params"].items() if isinstance(one, float) and one]


def tampered(header, arrays, place, rng):
    """Header and arrays with one number changed by a share of 1e-3 to 1e-1; entries of arrays are no dust."""
    factor = 1 + 10 ** rng.uniform(-3, -1) * rng.choice([-1, 1])
    (header, arrays) = opened(sealed(header, arrays))
    if place in arrays:
        array = arrays[place]
        entries = np.argwhere(np.abs(array) > 1e-3 * np.abs(array).max())
        array[tuple(entries[rng.integers(len(entries))])] *= factor
    elif place in header["params"]:
        for owner in (header["params"], header["kernel"]["params"]):
            if place in owner:
                owner[place] *= factor
    else:
        records = [header["certificate"], *header["certificate"]["parts"]]
        records = [record for record in records if record[place]]
        records[rng.integers(len(records))][place] *= factor
    return header, arrays


def objective(header, arrays, X, y, weights):
    """(objective, size of its terms) of a file's coefficients, in extended precision."""
    Z, params = X.astype(LD), {key: LD(one) for key, one in header["kernel"]["params"].items()}
    if "coef" in arrays:
        W = arrays["coef"].astype(LD)
        F, squares = W @ Z.T, (W * W).sum(axis=1)
    else:
        K = Z @ Z.T
        if header["kernel"]["name"] == "rbf":
            K = np.exp(-params["gamma"] * np.square(Z[:, None] - Z).sum(axis=2))
        elif header["kernel"]["name"] == "poly":
            K = (params["gamma"] * K + params["coef0"]) ** int(params["degree"])
        A = arrays["dual_coef"].astype(LD)
        F, squares = A @ K, (A @ K * A).sum(axis=1)
    b, c = arrays["intercept"].astype(LD), np.ones(len(y), LD) if weights is None else weights.astype(LD)
    S = signs(y, len(arrays["classes"]))
    params = {**header["params"], **header["kernel"]["params"]}
    return value(header["objective"], F + b[:, None], S, squares, None, b, c, header["bias"], params)


def says_something_else(whole, changed, place, data):
    """Whether a changed file states anything else: all do, but for parameters and intercepts that move nothing."""
    if place not in whole[0]["params"] and place != "intercept":
        return True
    (before, size), (after, _) = objective(*whole, *data), objective(*changed, *data)
    return abs(after - before) > LEAST_CHANGE * size


def written(header, arrays, folder):
    """The path of a file with these, whose digest fits."""
    path = folder / "changed.npz"
    path.write_bytes(sealed(header, arrays))
    return path
