"""What has to hold for grids, ladders, pairs of classes and regression, beside the properties of single fits."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np

import mdlearn
from fuzz import problems, runs
from fuzz.reference import LD, decision_values, gram, printed
from fuzz.regression import Regression
from fuzz.runs import CONTRADICTION, REACHABLE, scale_of

STRONG = ("svm", "ldm", "odm", "lssvm", "lsldm", "lsvm", "svr")
"""Objectives with 1/2 |w|^2: half the squared distance of w to the optimum is at most the gap."""


def rounding(problem, size):
    """What decision values are known to, for the sizes that they are summed of; kernel values underflow."""
    return 1e-5 * size + 1e-30 if problem.single else 1e-10 * size + 1e-290


def reachable(problem, tol):
    """Whether a tolerance is within what rows of this type allow: coefficients of float32 rows are float32, too."""
    return tol >= (1e-3 if problem.single else REACHABLE)


def converges(out):
    return out.model.certificate.converged


def rounded(out, tol):
    """Whether a fit ended within ten times its tolerance because rounding allowed no better."""
    return out.model.certificate.gap <= 10 * tol and any("rounding allows" in text for _, text, _ in out.warned)


def ladders(case):
    """A tolerance that a smaller one is met at is met."""
    for ladder in case.ladders:
        done = [out for out in ladder if out.model is not None and out.complete]
        for loose, tight in pairwise(done):
            if not reachable(case.problem, loose.run.given["tol"]):
                continue
            if converges(tight) and not converges(loose) and loose.key == tight.key:
                gap = loose.model.certificate.gap
                yield loose, f"gap {gap:.3g}, where tol {tight.run.given['tol']:g} is met, {loose.model.solver}"


def grids(case):
    """A point of a path has converged where a single fit has, and the other way."""
    for grid in case.grids:
        if not grid.whole.complete or not reachable(case.problem, case.tol):
            continue
        for one, two in zip(grid.points, grid.singles):
            if two.model is None:
                yield one, f"the point is refused alone: {two.error}"
                continue
            left = two if converges(one) else one
            if one.key == two.key and two.complete and converges(one) != converges(two) and not rounded(left, case.tol):
                yield (
                    one,
                    (
                        f"on the path gap {one.model.certificate.gap:.3g} by {one.model.solver}, alone "
                        f"{two.model.certificate.gap:.3g} by {two.model.solver}, {one.problem}"
                    ),
                )


def slow_grids(case):
    """A path takes no longer than its points alone, but for a tenth; where rounding ends fits, either may be first."""
    for grid in case.grids:
        alone = sum(out.cpu for out in grid.singles)
        ends = all(out.complete and out.model is not None and converges(out) for out in grid.singles)
        if ends and grid.whole.cpu > 1.1 * alone + 0.15:
            whole = grid.whole
            again = [runs.fit(whole.problem, whole.run, limit=whole.limit, call=mdlearn.fit_path) for _ in range(2)]
            singles = sum(runs.fit(out.problem, out.run).cpu for out in grid.singles)
            if all(out.cpu > 1.1 * singles + 0.15 for out in again):
                yield whole, f"{whole.cpu:.2f} s on the path, {alone:.2f} s alone"


# ---------------------------------------------------------------- selection


def selections(case):
    """Scores are those of single fits, as far as their gaps leave them open; the best is the largest mean."""
    for chosen in case.selections:
        scores, best = chosen.selection.scores, chosen.selection.best_index
        if not chosen.whole.complete:
            continue
        means = scores.mean(axis=1)
        if means[best] < means.max() - 1e-12 * max(abs(means).max(), 1.0):
            yield chosen.whole, f"the best point has {means[best]:.12g}, another one {means.max():.12g}"
        points = len(scores)
        for fold, (split, singles) in enumerate(zip(chosen.splits, chosen.singles)):
            certificates = chosen.selection.certificates[fold * points : (fold + 1) * points]
            for j, (out, certificate) in enumerate(zip(singles, certificates)):
                if out.model is None:
                    yield chosen.whole, f"point {j} of fold {fold} is refused alone: {out.error}"
                    continue
                limits = score_range(case.problem, out, certificate, *split)
                if limits is None:
                    continue
                low, high = limits
                slack = 1e-9 * max(abs(low), abs(high), 1.0)
                if not low - slack <= scores[j, fold] <= high + slack:
                    yield (
                        chosen.whole,
                        (
                            f"point {j} of fold {fold} scores {scores[j, fold]:.12g}, alone {low:.12g} to {high:.12g}: "
                            f"{out.problem.params}, {out.problem.kernel_params}"
                        ),
                    )


def score_range(problem, out, certificate, train, test):
    """Least and largest score of held-out rows that two models of these gaps may differ by; None if it is not known."""
    model = out.model
    parts = runs.parts_of(model), certificate.parts or (certificate,)
    weight = np.ones(len(test)) if problem.weight is None else np.asarray(problem.weight, dtype=float)[test]
    simple = problem.objective in STRONG and model.bias != "free" and not np.isinf(model.params.get("C", 0.0))
    if not simple or model.multiclass in problems.PAIRWISE or len(parts[0]) != len(parts[1]) or not weight.sum() > 0:
        return None
    f, away = held_out(problem, model, train, test)
    shorter = [sum(np.sqrt(2 * max(p.objective - p.lower_bound, 0.0)) for p in pair) for pair in zip(*parts)]
    away = away + np.multiply.outer(np.array(shorter), lengths(problem, model, test))
    if not np.isfinite(away).all():
        return None
    if isinstance(problem, Regression):
        return r2_range(problem.y[test], f[0], away[0], weight)
    return accuracy_range(problem, out, f, away, test, weight)


def held_out(problem, model, train, test):
    """(values, what rounding may have made of them), each (p, rows)."""
    b = model.intercept_.astype(LD)[:, None]
    if problem.linear and model._alpha is None:
        W, X = model.coef_.astype(LD), problem.X[test].astype(LD)
        f, size = W @ X.T, abs(W) @ abs(X.T)
    else:
        A, G = model.dual_coef_.astype(LD), gram(problem, model.params.get("gamma"))[np.ix_(train, test)]
        f, size = A @ G, abs(A) @ abs(G)
    return f + b, rounding(problem, size + abs(b))


def lengths(problem, model, test):
    """Lengths of held-out rows among the features, with the bias where it is one."""
    if problem.linear:
        squares = (problem.X[test].astype(LD) ** 2).sum(axis=1)
    else:
        squares = np.diagonal(gram(problem, model.params.get("gamma")))[test]
    return np.sqrt(np.maximum(squares, 0) + (model.bias == "regularized"))


def r2_range(y, f, away, weight):
    """1 less the share of the variance that residuals leave, for values that may be off."""
    mean = weight @ y / weight.sum()
    whole = weight @ (y - mean) ** 2
    if not whole > 1e-20 * (weight @ y**2):
        return None
    least = weight @ np.maximum(abs(y - f) - away, 0) ** 2
    most = weight @ (abs(y - f) + away) ** 2
    return float(1 - most / whole), float(1 - least / whole)


def accuracy_range(problem, out, f, away, test, weight):
    """Shares of rows that are right whatever is added, and that may be."""
    names = np.unique(out.problem.codes[out.problem.counts > 0])
    own = names[:, None] == problem.codes[test]
    if len(f) == 1:  # the second of two classes where it is positive
        f, away = np.array([-f[0], f[0]]), np.array([away[0], away[0]])
    low, high = f - away, f + away
    sure, maybe = np.zeros(len(test), bool), np.zeros(len(test), bool)
    for c in range(len(f)):
        rest = np.delete(np.arange(len(f)), c)
        sure |= own[c] & (low[c] > high[rest].max(axis=0))
        maybe |= own[c] & (high[c] >= low[rest].max(axis=0))
    return float(weight @ sure / weight.sum()), float(weight @ maybe / weight.sum())


# ---------------------------------------------------------------- pairs of classes


def pairs(case):
    """Every pair of classes is the problem of its rows alone."""
    for out, j, alone, here in case.class_pairs:
        if alone.model is None:
            yield alone, f"pair {j} is refused alone: {alone.error}"
            continue
        indices = [model.extras.get("basis_indices_") for model in (out.model, alone.model)]
        if indices[0] is not None and set(indices[0][j]) != set(here[indices[1]]):
            continue
        one, two = out.parts[j], alone.parts[0]
        scale = scale_of(one.objective, two.objective, out.values.at_zero[j])
        for name, low, high in (("among all", one, two), ("alone", two, one)):
            if np.isfinite([low.lower_bound, high.objective]).all() and (
                low.lower_bound > high.objective + CONTRADICTION * scale
            ):
                yield (
                    alone,
                    f"pair {j}: bound {low.lower_bound:.15g} {name}, objective {high.objective:.15g} the other way",
                )
        if out.complete and alone.complete and one.converged != two.converged and reachable(case.problem, case.tol):
            yield alone, f"pair {j}: gap {one.gap:.3g} among all, {two.gap:.3g} alone"


def votes(case):
    """Scores of pairs are votes, or memberships, by their definition; predictions are the largest."""
    for out in case.outcomes:
        model = out.model
        if model is None or model.multiclass not in problems.PAIRWISE or len(model.classes_) < 3:
            continue
        if "approximation" in model.params:
            continue
        F, size, _, _ = decision_values(out.problem, model)
        unsure = rounding(out.problem, size)
        if not np.isfinite(F).all():
            continue
        X = runs.laid_out(out.problem, out.run.layout)
        seen, k = model.decision_function(X), len(model.classes_)
        low, high = by_definition(F, unsure, k, model.multiclass)
        if ((seen < low) | (seen > high)).any():
            row = int(((seen < low) | (seen > high)).any(axis=1).argmax())
            yield out, f"row {row} has scores {seen[row]}, by the pairs {low[row]} to {high[row]}, {model.solver}"
        elif (model.predict(X) != model.classes_[seen.argmax(axis=1)]).any():
            yield out, f"predictions are not the largest of the scores, {model.solver}"


def by_definition(F, unsure, k, multiclass):
    """Limits of the scores (n, k) of classes, for values (p, n) of pairs that are known no better than that."""
    n = F.shape[1]
    each = np.full((2, k, k, n), np.nan)
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        for c, other, f in ((a, b, -F[p]), (b, a, F[p])):
            each[:, c, other] = f - unsure[p], f + unsure[p]
    if multiclass == "ovo":
        # Below half a vote more or less: what breaks ties.
        low = np.nansum(each[0] > 0, axis=1) - 0.5
        high = np.nansum(each[1] >= 0, axis=1) + 0.5
    else:
        member = np.minimum(each, 1)
        least, most = (np.nanmin if multiclass == "fuzzy-min" else np.nanmean)(member, axis=2)
        low, high = least - 1e-12, most + 1e-12
    return low.T.astype(float), high.T.astype(float)


# ---------------------------------------------------------------- regression


def constants(case):
    """No bound is above the objective of w = 0 with any intercept."""
    if not isinstance(case.problem, Regression):
        return
    problem = case.problem
    here = problem.counts > 0
    y, c = problem.y[here].astype(LD), problem.counts[here].astype(LD)
    for out in [out for out in case.outcomes if out.model is not None]:
        p = {name: LD(value) for name, value in out.model.params.items() if isinstance(value, (int, float))}
        kinks = [LD(0)] if out.model.bias == "none" else [LD(0), *y - p["epsilon"], *y, *y + p["epsilon"]]
        square = (lambda b: b * b) if out.model.bias == "regularized" else (lambda b: LD(0))
        best = min(float(sum(printed.svr(b - y, square(b), c, p))) for b in kinks)
        bound = out.model.certificate.lower_bound
        if bound > best + CONTRADICTION * scale_of(best, bound, out.values.at_zero[0]):
            yield out, f"bound {bound:.15g} by {out.model.solver}, a constant has {best:.15g}"


GRID_PROPERTIES = {
    "ladder": ladders,
    "path": grids,
    "slow path": slow_grids,
    "scores": selections,
    "pair": pairs,
    "votes": votes,
    "constant": constants,
}
