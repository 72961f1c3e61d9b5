"""What has to hold for the runs of a problem: a table of properties, each a generator of sentences."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np

import mdlearn
from fuzz import runs
from fuzz.judged_grids import GRID_PROPERTIES
from fuzz.reference import hidden, values_of
from fuzz.runs import CONTRADICTION, REACHABLE, parts_of, scale_of

EQUAL = 1e-9
"""Relative to `scale_of`: what objective, history and effort are held to."""
ZERO = 1e-10
STOCHASTIC = ("asgd", "sgd")
OF_OTHERS = ("cannot take", "row blocks", "give X and y", "warm_start", "falls along a direction")
"""Words of sentences about an engine, a layout or a start; the last: an infimum that no w attains can be come near."""
HOME, OURS = str(Path(mdlearn.__file__).parent), str(Path(__file__).parent)


def solved(outcomes):
    return [out for out in outcomes if out.model is not None]


def everything(case):
    """All outcomes."""
    again = [out for pair in case.pairs for out in pair[1:]]
    apart = [*case.others, *[[alone] for _, _, alone, _ in getattr(case, "class_pairs", ())]]
    return [*case.outcomes, *again, *[out for group in apart for out in group]]


def scales(out):
    """For every part: what differences are measured by."""
    zero = out.values.at_zero
    return [scale_of(part.objective, part.lower_bound, z) for part, z in zip(out.parts, zero)]


def tracebacks(case):
    """No error but a sentence of our own, of type ValueError or TypeError."""
    for out in everything(case):
        error = out.error
        if error is None:
            continue
        text = str(error)
        ours = type(error) in (ValueError, TypeError) or type(error).__module__.startswith("mdlearn")
        if not (ours and isinstance(error, (ValueError, TypeError)) and out.where.startswith(HOME)):
            yield out, f"{type(error).__name__}: {text[:200]} (at {out.where})"
        elif len(text) < 20 or " " not in text or "\n" in text:
            yield out, f"no sentence: {text[:200]!r} (at {out.where})"


def warned(case):
    """No warning but a ConvergenceWarning, or one that the caller's own kernel gives."""
    for out in everything(case):
        for category, text, where in out.warned:
            if category != "ConvergenceWarning" and not where.startswith(OURS):
                yield out, f"{category}: {text[:150]} (at {where})"


def finite(case):
    """Coefficients are finite, and so is the objective unless a hard margin is not met."""
    for out in solved(everything(case)):
        arrays = [out.model.intercept_, out.model._coef, out.model._alpha, out.model.duals]
        if not all(a is None or np.isfinite(a).all() for a in arrays):
            yield out, "coefficients are not finite"
        hard = np.isinf(out.model.params.get("C", 0.0))
        if not (hard or np.isfinite(out.model.certificate.objective)):
            yield out, f"objective is {out.model.certificate.objective}"


def certificates(case):
    """Gap, sums and `converged` are what they are defined to be."""
    for out in solved(everything(case)):
        whole, zero = out.model.certificate, out.values.at_zero
        hard = np.isinf(out.model.params.get("C", 0.0))
        for part, at_zero in zip(out.parts, zero):
            small = all(one.converged for one in part.parts) if part.parts else part.gap <= part.tol
            if part.converged != small or part.lower_bound > part.objective:
                yield out, f"converged, gap and bound do not go together: {part}"
            if np.isfinite(part.lower_bound) and np.isfinite(part.objective):
                least = abs(part.lower_bound) if hard else 0.01 * abs(float(at_zero))
                gap = (part.objective - part.lower_bound) / max(abs(part.objective), least, np.finfo(float).tiny)
                if abs(gap - part.gap) > 1e-9 * gap + 1e-15:
                    yield out, f"gap {part.gap:.6g} should be {gap:.6g}: {part}, {float(at_zero):.6g} at zero"
        if whole.parts:
            total = sum(part.objective for part in whole.parts)
            if np.isfinite(total) and abs(total - whole.objective) > 1e-12 * sum(abs(p.objective) for p in whole.parts):
                yield out, f"objective {whole.objective} is not the sum of its parts {total}"
            if whole.converged != all(part.converged for part in whole.parts):
                yield out, "converged is not that of all parts"


def pools(case):
    """Outcomes of the same mathematical problem, features included."""
    for group in [case.outcomes, *case.others]:
        same = defaultdict(list)
        for out in solved(group):
            same[out.key].append(out)
        yield from same.values()


def contradictions(case):
    """No bound above an objective that any run has, for the same problem."""
    for pool in pools(case):
        for j in range(len(pool[0].parts)):
            low = max(pool, key=lambda out: out.parts[j].lower_bound)
            high = min(pool, key=lambda out: out.parts[j].objective)
            bound, value = low.parts[j].lower_bound, high.parts[j].objective
            if not (np.isfinite(bound) and np.isfinite(value)):
                continue
            scale = scale_of(value, bound, high.values.at_zero[j])
            if bound > value + CONTRADICTION * scale:
                yield (
                    low,
                    (
                        f"bound {bound:.15g} of {low.model.solver} (gap {low.parts[j].gap:.2g}) is above the objective "
                        f"{value:.15g} of [{high.run}, {high.model.solver}] by {(bound - value) / scale:.2g}"
                    ),
                )


def false_bounds(case):
    """No bound above the printed objective at the coefficients of any run, in extended precision."""
    for pool in pools(case):
        for j in range(len(pool[0].parts)):
            low = max(pool, key=lambda out: out.parts[j].lower_bound)
            bound = low.parts[j].lower_bound
            for out in pool:
                if out.values.exact is None:
                    continue
                value = float(out.values.exact[j]) + out.values.noise
                scale = scale_of(value, bound, out.values.at_zero[j])
                if np.isfinite(bound) and bound > value + CONTRADICTION * scale:
                    yield (
                        low,
                        (
                            f"bound {bound:.15g} of {low.model.solver} is above the true objective {value:.15g} of "
                            f"[{out.run}, {out.model.solver}] by {(bound - value) / scale:.2g}"
                        ),
                    )
                    break


def predictions(case):
    """The certified objective is that of decision values and coefficients, or the gap covers the difference."""
    for out in solved(everything(case)):
        values = out.values
        for name, found in (("predict", values.predicted), ("coefficients", values.exact)):
            if found is None:
                continue
            for part, value, scale in zip(out.parts, found, scales(out)):
                value = float(value)
                left = part.objective - part.lower_bound
                if not (np.isfinite(value) and np.isfinite(part.objective)):
                    if np.isfinite(part.objective):
                        yield out, f"objective {part.objective:.15g}, of {name} {value}"
                    continue
                noise = values.noise if name == "coefficients" or values.exact is None else 0.0
                if abs(value - part.objective) > EQUAL * scale + left + noise:
                    yield (
                        out,
                        (
                            f"objective {part.objective:.15g} by {out.model.solver}, of {name} {value:.15g}: "
                            f"{(part.objective - value) / scale:.2g} relative, gap {part.gap:.2g}"
                        ),
                    )


def above_zero(case):
    """No answer is worse than w = 0."""
    for out in solved(everything(case)):
        for part, zero in zip(out.parts, out.values.at_zero):
            zero = float(zero)
            if np.isfinite(zero) and not part.objective <= zero + ZERO * scale_of(zero, 0.0, 0.0):
                yield out, f"objective {part.objective:.10g} by {out.model.solver}, w = 0 has {zero:.10g}"


def efforts(case):
    """With more reports the objective does not rise and the bound does not fall."""
    for done in case.efforts:
        for less, more in pairwise([out for out in solved(done) if out.complete]):
            if less.key != more.key:
                continue
            told = f"{more.model.solver}, max_iter {less.run.given['max_iter']} and {more.run.given['max_iter']}"
            for j, (a, b, scale) in enumerate(zip(less.parts, more.parts, scales(less))):
                if np.isfinite(a.objective) and not b.objective <= a.objective + EQUAL * scale:
                    yield more, f"objective {a.objective:.12g} becomes {b.objective:.12g}, {told}, part {j}"
                if np.isfinite(a.lower_bound) and not b.lower_bound >= a.lower_bound - EQUAL * scale:
                    yield more, f"bound {a.lower_bound:.12g} becomes {b.lower_bound:.12g}, {told}, part {j}"


class _Started:
    """A start's coefficients under the parameters of another fit."""

    def __init__(self, start, model):
        self._start, self.params = start, model.params

    def __getattr__(self, name):
        return getattr(self._start, name)


def starts(case):
    """No answer is worse than the start that it was given.

    For the same parameters by what is certified; for others in extended precision, but for what the answer's objective
    is certified above its own true value, and for what roundings of kernel values may hide of the start's.
    """
    for out, start, _ in case.starts:
        if out.model is None:
            continue
        # Features of rows in other storage are other ones but for rounding: approximations amplify that.
        if start.params == out.model.params and "approximation" not in start.params:
            before = [part.objective for part in parts_of(start)]
            # A start of rows in other storage was judged by kernel values with other roundings.
            unknown = hidden(case.problem, start)
            slack = [unknown + EQUAL * scale for scale in scales(out)]
        elif case.problem.objective == "l3svm":
            continue
        else:
            values = values_of(case.problem, _Started(start, out.model))
            before = [float(value) for value in values.exact or values.predicted or ()]
            after = [float(value) for value in out.values.exact or out.values.predicted or ()]
            unknown = values.noise + out.values.noise + hidden(case.problem, _Started(start, out.model))
            slack = [abs(p.objective - v) + unknown + EQUAL * s for p, v, s in zip(out.parts, after, scales(out))]
        for part, began, some in zip(out.parts, before, slack):
            if np.isfinite(began) and not part.objective <= began + some:
                yield out, f"objective {part.objective:.12g} by {out.model.solver}, its start has {began:.12g}"


def slow_starts(case):
    """A start makes no fit slower by more than a tenth."""
    for out, _, cold in case.starts:
        if out.model is None or cold.model is None or not cold.complete:
            continue
        if slower(out, cold):
            more = [(runs.fit(out.problem, out.run), runs.fit(cold.problem, cold.run)) for _ in range(2)]
            if all(slower(a, b) for a, b in more):
                yield out, f"{out.cpu:.2f} s from a start, {cold.cpu:.2f} s without, {out.model.solver}"


def slower(out, cold):
    return out.cpu > 1.1 * cold.cpu + 0.15


def histories(case):
    """History never contradicts the certificate, is monotone, ends in it, and at the first report that meets tol."""
    for out in solved(everything(case)):
        if out.run.layout == "blocks" or not out.model.history:
            continue
        published = out.model.solver in STOCHASTIC or out.run.given.get("solver_options", {}).get("stop") == "step"
        states = defaultdict(list)
        for state in out.model.history:
            states[state.problem if len(out.parts) > 1 else 0].append(state)
        for j, scale in enumerate(scales(out)):
            wrong = history_fault(states[j], out.parts[j], EQUAL * scale, not published)
            if wrong:
                yield out, f"part {j} of {out.model.solver}: {wrong}"
                break


def history_fault(states, part, slack, stops):
    """What is wrong with the records of one problem; None where nothing is."""
    bound, objective = part.lower_bound, part.objective
    for state in states:
        if state.lower_bound > objective + slack:
            return f"entry {state.iteration} has bound {state.lower_bound:.12g}, objective is {objective:.12g}"
        if state.objective < bound - slack:
            return f"entry {state.iteration} has objective {state.objective:.12g}, certified is bound {bound:.12g}"
    for a, b in pairwise(states):
        if b.objective > a.objective + slack:
            return f"entry {b.iteration}: objective rises from {a.objective:.12g} to {b.objective:.12g}"
        if b.lower_bound < a.lower_bound - slack:
            return f"entry {b.iteration}: bound falls from {a.lower_bound:.12g} to {b.lower_bound:.12g}"
        if stops and part.tol > 0 and a.gap <= part.tol:
            return f"entry {a.iteration} of {len(states)} had gap {a.gap:.3g}, tol is {part.tol:g}"
    if states and abs(states[-1].objective - objective) > slack:
        return f"last entry has objective {states[-1].objective:.12g}, certified is {objective:.12g}"
    if states and np.isfinite(bound) and abs(states[-1].lower_bound - bound) > slack:
        return f"last entry has bound {states[-1].lower_bound:.12g}, certified is {bound:.12g}"
    return None


def bits(model):
    """All that is to be the same again."""
    arrays = [model.intercept_, model._coef, model._alpha, model.duals]
    entries = [(s.iteration, s.objective, s.lower_bound, s.gap, s.problem) for s in model.history]
    return [None if a is None else a.tobytes() for a in arrays], repr(model.certificate), repr(entries), model.n_iter


def repeats(case):
    """The same call gives the same bits."""
    for one, two in case.pairs:
        if not (one.complete and two.complete):
            continue
        if two.model is None:
            yield two, f"the second time: {two.error}"
        elif bits(one.model) != bits(two.model):
            names = ("arrays", "certificate", "history", "n_iter")
            differ = [name for name, a, b in zip(names, bits(one.model), bits(two.model)) if a != b]
            yield two, f"not the same bits: {', '.join(differ)}"


def weights(case):
    """A weight is a repetition: refused or converged both, or neither."""
    if case.weighted is None:
        return
    one, two = case.weighted
    if not (one.complete and two.complete):
        return
    if (one.model is None) != (two.model is None):
        yield two, f"weights: {one.error or one.model!r}; repeated rows: {two.error or two.model!r}"
    elif one.model is not None and one.key == two.key:
        a, b = one.model.certificate, two.model.certificate
        # Below this, rounding decides, and it is not the same in two sums.
        if a.converged != b.converged and a.tol >= REACHABLE:
            yield two, f"weights: gap {a.gap:.3g}, repeated rows: gap {b.gap:.3g}, tol {a.tol:g}, {one.model.solver}"


def voices(case):
    """No engine says that a problem has no optimum where another one has proved one."""
    for group in [case.outcomes, *case.others]:
        proved = [out for out in solved(group) if out.model.certificate.gap <= 1e-3]
        for out in group:
            text = str(out.error)
            if out.error is None or not proved or any(word in text for word in (*OF_OTHERS, repr(out.run.solver))):
                continue
            yield out, f"{text[:150]}; but [{proved[0].run}] has {proved[0].model!r}"


def choices(case):
    """What "auto" chooses converges where another engine does."""
    first, *others = [out for out in solved(case.outcomes) if out.run.role in ("first", "engine")] or [None]
    if first is None or first.run.role != "first" or first.model.certificate.converged or case.tol < REACHABLE:
        return
    if not first.complete:
        # A busy machine may have taken the time, not the engine.
        again = (runs.fit(first.problem, first.run, limit=first.limit) for _ in range(2))
        if any(one.model is not None and one.model.certificate.converged for one in again):
            return
    for out in others:
        if out.model.certificate.converged and out.key == first.key and 2 * out.cpu < first.limit:
            gap = first.model.certificate.gap
            yield (
                first,
                f"{first.model.solver} ends at gap {gap:.2g} in {first.cpu:.2f} s, [{out.run}] in {out.cpu:.2f} s",
            )
            break


def late(case):
    """A fit ends at its limit, a tenth and 0.3 s more."""
    for out in everything(case):
        if out.late:
            again = [runs.fit(out.problem, out.run, limit=out.limit, call=out.call) for _ in range(2)]
            if all(one.late for one in again):
                yield out, f"limit {out.limit:g} s, took {out.cpu:.2f} s of CPU, {out.wall:.2f} s"


PROPERTIES = {
    "contradiction": contradictions,
    "false bound": false_bounds,
    "predict": predictions,
    "above zero": above_zero,
    "effort": efforts,
    "start": starts,
    "slow start": slow_starts,
    "history": histories,
    "bits": repeats,
    "weights": weights,
    "one voice": voices,
    "choice": choices,
    "certificate": certificates,
    "finite": finite,
    "traceback": tracebacks,
    "warning": warned,
    "late": late,
    **GRID_PROPERTIES,
}
