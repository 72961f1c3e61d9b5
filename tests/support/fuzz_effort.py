"""More effort is never worse: random problems, every engine, and ever more iterations of each.

``python tests/support/fuzz_effort.py FIRST LAST`` runs the problems of these seeds and prints what contradicts: an
objective that rises or a bound that falls with `max_iter`, an answer above w = 0 or above the start that it was given,
a history that the certificate does not hold. A problem is what its seed says, and nothing else.
"""

from __future__ import annotations

import itertools
import sys
import warnings

import numpy as np
import scipy.sparse as sp

import mdlearn

EFFORTS = (1, 2, 5, 10, 20, 50)
SLACK = 1e-9
ENGINES = ("apg", "asgd", "cd", "direct", "interior", "linprog", "newton", "sgd", "smw", "auto")
NAMES = ("l2lr", "l3svm", "ldm", "lsldm", "lssvm", "lsvm", "mdlm", "mlr", "mmlr", "rlp", "svm", "uldm", "ww")


def wide(rng, low, high):
    """A number between powers of ten."""
    return float(10.0 ** rng.uniform(low, high))


def data(rng):
    """Rows of some layout and scale, labels and weights."""
    m, d, k = int(rng.integers(6, 50)), int(rng.integers(1, 8)), int(rng.choice([2, 2, 2, 3, 4]))
    X = rng.standard_normal((m, d))
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-6, 6, d)
    elif rng.random() < 0.4:
        X *= wide(rng, -6, 6)
    if rng.random() < 0.2:
        X[:, 0] = wide(rng, -2, 6)
    if rng.random() < 0.2:
        X = X[rng.integers(0, max(2, m // 2), m)]
    y = rng.integers(0, k, m)
    if rng.random() < 0.6:
        score = X / np.maximum(np.abs(X).max(axis=0), 1e-300) @ rng.standard_normal((d, k))
        y = np.argmax(score + wide(rng, -3, 0.5) * rng.standard_normal((m, k)), axis=1)
    y[:k] = np.arange(k)
    layout = rng.choice(["dense", "dense", "dense32", "csr", "csr32", "fortran"])
    if "csr" in layout:
        X = sp.csr_matrix(np.where(rng.random(X.shape) < 0.5, X, 0.0))
    X = X.astype(np.float32) if "32" in layout else X
    X = np.asfortranarray(X) if layout == "fortran" else X
    weights = None if rng.random() < 0.6 else rng.integers(0, 4, m) + (rng.random(m) < 0.5) * rng.random(m)
    if weights is not None:
        weights[:k] = 1.0
    return X, y, weights


def parameters(rng, name):
    """Hyper-parameters of an objective, far apart."""
    C = wide(rng, -4, 5)
    if name == "ldm":
        lambdas = {} if rng.random() < 0.3 else {"lambda1": wide(rng, -3, 6), "lambda2": wide(rng, -3, 4)}
        return {"C": float(rng.choice([C, C, C, 0.0, np.inf])), **lambdas}
    if name == "svm":
        return {"C": float(rng.choice([C, C, C, np.inf]))}
    if name in ("lssvm", "ww"):
        return {"C": C}
    if name == "uldm":
        return {"C": C, "lambda0": wide(rng, -2, 2)}
    if name == "lsldm":
        return {"C": C, "lambda1": wide(rng, -2, 3), "lambda2": wide(rng, -2, 3)}
    if name == "lsvm":
        return {"nu": C}
    if name == "mdlm":
        ridge = {} if rng.random() < 0.5 else {"ridge": wide(rng, -4, 1)}
        return {"alpha": wide(rng, -1, 1), "lambda1": wide(rng, -2, 2), "beta": float(rng.choice([0.0, C])), **ridge}
    if name in ("l2lr", "mlr", "mmlr"):
        return {"lam": wide(rng, -6, 2)}
    if name == "l3svm":
        loss = str(rng.choice(["hinge", "squared_hinge"]))
        return {"C": C, "loss": loss, "n_clusters": int(rng.integers(1, 4)), "n_landmarks": int(rng.integers(1, 5))}
    return {}


def problem(seed):
    """Objective, rows, labels and settings; kernels, biases and ways of several classes by chance."""
    rng = np.random.default_rng(seed)
    X, y, weights = data(rng)
    name = str(rng.choice(NAMES))
    given = {"sample_weight": weights, **parameters(rng, name)}
    kernel = str(rng.choice(["linear", "linear", "rbf", "poly", "precomputed"]))
    if name not in ("mdlm", "l2lr", "mlr", "mmlr", "l3svm", "rlp") and kernel != "linear":
        given["kernel"] = kernel
        if kernel == "rbf":
            given["gamma"] = wide(rng, -3, 1) if rng.random() < 0.5 else "scale"
        if kernel == "poly":
            given |= {"gamma": wide(rng, -2, 0), "degree": int(rng.integers(1, 4)), "coef0": float(rng.choice([0, 1]))}
        if kernel == "precomputed":
            A = X.toarray() if sp.issparse(X) else X
            A = A.astype(float) / np.maximum(np.abs(A).max(), 1e-300) * wide(rng, -3, 3)
            X = (A @ A.T).astype(A.dtype)
    if rng.random() < 0.6:
        given["bias"] = str(rng.choice(["none", "regularized", "free"]))
    if len(np.unique(y)) > 2 and rng.random() < 0.6:
        given["multiclass"] = str(rng.choice(["ovr", "ovo", "joint", "fuzzy-min"]))
    return name, X, y, given


def fit(name, X, y, **given):
    """A model; None where it is refused, in one sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        try:
            return mdlearn.fit(name, X, y, **given)
        except (ValueError, TypeError):
            return None


def blocks(X, y, weights, rng):
    """The same rows in blocks."""
    cuts = np.sort(rng.integers(0, X.shape[0] + 1, 2))
    spans = [slice(a, b) for a, b in itertools.pairwise([0, *cuts, X.shape[0]]) if a < b]
    return [(X[s], y[s]) if weights is None else (X[s], y[s], weights[s]) for s in spans]


def in_blocks(seed, engines=("newton", "asgd", "sgd")):
    """Yield (engine, what is wrong) of one problem over row blocks."""
    name, X, y, given = problem(seed)
    weights = given.pop("sample_weight")
    if given.get("multiclass", "ovr") not in ("ovr", "joint") or given.get("kernel", "linear") != "linear":
        return
    rng = np.random.default_rng([seed, 2])
    source, tol = blocks(X, y, weights, rng), float(rng.choice([1e-3, 1e-6, 1e-10]))
    free = given.get("bias", "free") == "free"  # the best intercept takes all rows at once
    zero = None if free else at_zero(name, X, y, {**given, "sample_weight": weights})
    for engine in engines:
        models = [fit(name, source, None, max_iter=n, solver=engine, tol=tol, **given) for n in EFFORTS]
        found = [*worse(models), *broken(models, zero)]
        if engine != "newton":  # bounds of earlier epochs would take passes of their own
            found = [one for one in found if ": bound" not in one]
        yield f"{engine} over blocks", found


def parts(model):
    """Certificates of the problems."""
    return model.certificate.parts or (model.certificate,)


def scale(one, other):
    """What a difference is relative to."""
    return SLACK * max(abs(one), abs(other)) + 1e-300


def contradictions(model):
    """What the history of a model says that its certificates do not hold."""
    for j, told in enumerate(parts(model)):
        states = [state for state in model.history if state.problem == j]
        if not states:
            continue
        last = states[-1]
        if (last.objective, last.lower_bound, last.gap) != (told.objective, told.lower_bound, told.gap):
            yield f"the last entry {last} is not the certificate {told}"
        for a, b in itertools.pairwise(states):
            if b.objective > a.objective + scale(a.objective, b.objective):
                yield f"history rises from {a.objective!r} to {b.objective!r}"
            if b.lower_bound < a.lower_bound - scale(a.lower_bound, b.lower_bound):
                yield f"the bound falls from {a.lower_bound!r} to {b.lower_bound!r}"
            if a.gap <= told.tol and model.solver not in ("asgd", "sgd", "smw"):
                yield f"it went on from gap {a.gap}"


def worse(models):
    """Where more iterations have a larger objective or a smaller bound."""
    for n, before, after in zip(EFFORTS, models, models[1:]):
        if before is None or after is None:
            continue
        for j, (a, b) in enumerate(zip(parts(before), parts(after))):
            if b.objective > a.objective + scale(a.objective, b.objective):
                yield f"problem {j}: objective {a.objective!r} after {n} and {b.objective!r} after more"
            if b.lower_bound < a.lower_bound - scale(a.lower_bound, b.lower_bound):
                yield f"problem {j}: bound {a.lower_bound!r} after {n} and {b.lower_bound!r} after more"


def at_zero(name, X, y, given):
    """Objectives of the parts at w = 0: what a fit without any time has, unless that is better already."""
    model = fit(name, X, y, **{**given, "solver": "auto", "time_limit": 1e-9})
    if model is None or any(values is not None and np.any(values) for values in (model._coef, model._alpha)):
        return None
    return [part.objective for part in parts(model)]


def looks(seed, engines=ENGINES):
    """Yield (engine, what is wrong) of one problem."""
    name, X, y, given = problem(seed)
    zero = at_zero(name, X, y, given)
    tol = float(np.random.default_rng([seed, 1]).choice([1e-3, 1e-6, 1e-10]))
    for engine in engines:
        settings = {**given, "solver": engine, "tol": tol}
        models = [fit(name, X, y, max_iter=n, **settings) for n in EFFORTS]
        yield engine, [*worse(models), *broken(models, zero), *from_start(name, X, y, settings, models)]


def broken(models, zero):
    """What single models say that is not so, or that w = 0 does better."""
    for model in models:
        if model is None:
            continue
        yield from contradictions(model)
        for j, (a, b) in enumerate(zip(zero or (), parts(model))):
            if not b.objective <= a + scale(a, b.objective):
                yield f"problem {j}: {b.objective!r} above w = 0 ({a!r}) after {model.n_iter}"


def from_start(name, X, y, settings, models):
    """What is worse than the start, or goes on from a start that meets the tolerance."""
    for start in (models[1], models[-1]):
        if start is None or name in ("ww", "rlp"):
            continue
        again = fit(name, X, y, warm_start=start, max_iter=3, **settings)
        if again is None:
            continue
        for j, (a, b) in enumerate(zip(parts(start), parts(again))):
            if b.objective > a.objective + scale(a.objective, b.objective):
                yield f"problem {j}: objective {a.objective!r} at the start and {b.objective!r} from there"
        if (
            start.certificate.converged
            and X.dtype == np.float64
            and again.certificate.gap > 10 * start.certificate.tol + 1e-12
        ):
            yield f"gap {start.certificate.gap!r} at the start and {again.certificate.gap!r} from there"


def main(first, last):
    """Print contradictions and their number."""
    count = bad = 0
    for seed in range(first, last):
        for engine, found in looks(seed):
            count += 1
            bad += bool(found)
            for told in found[:3]:
                print(f"{seed} {engine}: {told}", flush=True)
        if seed % 50 == 49:
            print(f"-- {seed + 1 - first} problems", flush=True)
    print(f"{count} engines on {last - first} problems, {bad} with contradictions")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
