"""Choice of an engine: the one asked for, or by ``solver="auto"`` the cheapest of all that say what a form costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import compress
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.driver.checked_engine import CheckedEngine, engine_takes_form
from mdlearn.driver.driver import Driver, Prepared, Starts
from mdlearn.driver.limits import Limits
from mdlearn.errors import call_with_error_notes, came, class_is_foreign, faulty
from mdlearn.forms.answer_faults import number_answer_fault
from mdlearn.forms.margin import NO_KINDS, MarginForm
from mdlearn.forms.problem import Form, Problem, Several, problems_of
from mdlearn.solvers.auto import FOLLOWERS, RELIEF
from mdlearn.solvers.base import Claim, Solver
from mdlearn.solvers.systems.equal_rows import groups_of_equal_rows


class Choice(NamedTuple):
    """Choice of an engine: its name, and why it is the one.

    `claims`: operations that every engine claimed which was asked, by name; None: it claimed nothing; `engine`: the
    engine itself, where it is known that it takes the form.
    """

    solver: str
    reason: str
    claims: dict[str, float | None]
    engine: Solver | None = None


NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
"""Options of a caller who gives none to the engine that is chosen."""


def chosen_driver(
    engine: Solver | None,
    given: dict[str, Any],
    form: Form,
    solvers: Mapping[str, type[Solver]],
    named: Callable[[str], Any],
    limits: Limits,
    seed: int,
    starts: Starts | None = None,
    prepared: Prepared | None = None,
) -> tuple[Driver, Choice]:
    """Return the driver of the engine that is to solve a form, and why it is that: asked for, or chosen by "auto".

    "auto" chooses among `solvers`, and others of mdlearn that know the options `given` go on after its choice; `named`
    finds the class, or the engine itself, that a form names.
    """
    asked = engine and Choice(engine.name, "asked for", {})
    choice = asked or choose_solver(form, solvers.values(), given)
    if choice.engine is not None:
        runner = CheckedEngine(choice.engine)
    else:
        found = engine or named(choice.solver)
        runner = CheckedEngine(found() if isinstance(found, type) else found)
        check_engine_takes(solvers, runner, form)
    relief: tuple[Solver, ...] = RELIEF if engine is None else ()
    if given:
        relief = tuple(one for one in relief if given.keys() <= one.options.keys())
    options, follower = runner.check_options(given), FOLLOWERS.get(runner.solver.name)
    return Driver(runner, options, limits, seed, starts, prepared, relief, follower), choice


def check_engine_takes(solvers: Mapping[str, type[Solver]], runner: CheckedEngine, form: Form) -> None:
    """Check that the engine of a choice takes the form; the ValueError lists those of `solvers` that can."""
    refusal = runner.refusal(form)
    if refusal is not None:
        able = [name for name, cls in solvers.items() if engine_takes_form(cls, form)]
        instead = f"use one of {', '.join(able)}" if able else "no other engine can"
        raise ValueError(f"solver {runner.solver.name!r} cannot take this problem: {refusal}; {instead}")


def choose_solver(form: Form, engines: Iterable[type[Solver]], given: Mapping[str, Any] = NO_OPTIONS) -> Choice:
    """Choose the engine with the cheapest claim, the first of equals, unless the form names its own.

    Where none claims it, the first that takes it is chosen, those that promise its optimum before others; ValueError
    where none does. Of engines that know the options `given`, those to which these leave enough memory come first;
    where none that claims the form knows them, they do not count.
    """
    named = problems_of(form)[0].engine if type(form) is not MarginForm and isinstance(form, Problem | Several) else ""
    if named:
        return Choice(named, "the engine that this kind of problem names", {})
    kinds, sort = NO_KINDS, (False, False, False, False)
    if isinstance(form, MarginForm):
        kinds, other = form.kinds, type(form.features) is not LinearFeatures
        sort = other, form.ridge == 0, form.penalised, form.quadratic
    unasked, candidates = _engines_for_choice(tuple(engines), kinds, sort)
    asked = unasked.copy()
    groups = groups_of_equal_rows(form) if isinstance(form, MarginForm) and sort[0] else None
    best, chosen, least = None, None, (True, float("inf"))
    for cls, own in candidates:
        if cls.claims is Solver.claims or (given and not given.keys() <= cls.options.keys()):
            continue
        engine = own or cls()
        taken = groups[1] if groups is not None and engine.merges_equal_rows else form  # what it would be given
        claim = engine.claims(taken) if own else _foreign_claim_for_choice(engine, taken)
        if claim is not None:
            asked[cls.name] = claim.operations
            cost = bool(given) and _choice_lacks_memory(engine, form, given), claim.operations
            if cost < least:
                best, chosen, least = claim, engine, cost
    if best is None and given:
        return choose_solver(form, engines)
    if best is None or chosen is None:
        found = _unclaimed_choice(form, [cls() for cls in engines])
        return Choice(found.name, "no engine claims it, and this one can", asked, found)
    return Choice(chosen.name, best.reason, asked, chosen)


@lru_cache(maxsize=64)
def _engines_for_choice(
    engines: tuple[type[Solver], ...], kinds: frozenset[str], sort: tuple[bool, ...]
) -> tuple[dict[str, float | None], list[tuple[type[Solver], Solver | None]]]:
    """Names of all engines, and those to ask for the choice: plugins' all, of mdlearn's those that take these kinds.

    `sort`: whether the form has other features than rows, no ridge, and terms of the coefficients, and whether it is
    quadratic (`claims_only`).
    Those of mdlearn come ready made, as nothing in them changes; one of a plugin is made anew for every fit.
    """
    found = [(cls, class_is_foreign(cls)) for cls in engines]
    only = {"", *compress(("other features", "no ridge", "penalised", "quadratic"), sort)}
    asked = [one for one in found if one[1] or (kinds <= one[0].kinds and one[0].claims_only in only)]
    candidates = [(cls, None if foreign else cls()) for cls, foreign in asked]
    return dict.fromkeys([cls.name for cls in engines]), candidates


def _choice_lacks_memory(engine: Solver, form: Form, given: Mapping[str, Any]) -> bool:
    """Whether options leave an engine too little memory to be chosen; how much there is at all does not count."""
    runner = CheckedEngine(engine)
    options = runner.check_options(dict(given))
    try:
        runner.require_memory(form, options, 1)
    except ValueError:
        return True
    except MemoryError:
        pass
    return False


def _foreign_claim_for_choice(engine: Solver, form: Form) -> Claim | None:
    """Claim of a plugin's engine, checked, for the choice; one that it inherits from mdlearn's is not its own."""
    if engine.claims.__module__.startswith("mdlearn."):
        return None
    claim: Claim | None = call_with_error_notes(engine, "solver", "claims", form)
    if claim is not None:
        check_claim_for_choice(engine, claim, form)
    return claim


def check_claim_for_choice(engine: Solver, claim: Any, form: Form) -> None:
    """Check the claim by which an engine of a plugin wants to be chosen: FaultyPlugin says what is wrong with it."""
    if not isinstance(claim, Claim):
        raise faulty(engine, "solver", "claims", f"returned {came(claim)}, a Claim or None is needed")
    fault = number_answer_fault(claim.operations, np.finfo(float).tiny, np.finfo(float).max, " as operations")
    if not fault and not (isinstance(claim.reason, str) and claim.reason):
        fault = f"returned {came(claim.reason)} as reason, a text that is not empty is needed"
    refusal = None if fault else CheckedEngine(engine).refusal(form)
    if refusal is not None:
        fault = f"claims a problem that its refusal does not take: {refusal}"
    if fault:
        raise faulty(engine, "solver", "claims", fault)


def _unclaimed_choice(form: Form, engines: list[Solver]) -> Solver:
    """Engine to choose for a form that none claims."""
    refusals = [CheckedEngine(engine).refusal(form) for engine in engines]
    able = [engine for engine, refusal in zip(engines, refusals) if refusal is None]
    if not able:
        reasons = "; ".join(dict.fromkeys(filter(None, refusals)))
        raise ValueError(f"solver 'auto' cannot take this problem: no engine can ({reasons})")
    return next((engine for engine in able if engine.reaches(form)), able[0])
