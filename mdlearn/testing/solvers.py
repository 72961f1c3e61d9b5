"""Solvers, checked on small problems: what an engine takes, hands in, and comes to."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np

from mdlearn.api import fit
from mdlearn.driver.checked_engine import CheckedEngine, engine_takes_form
from mdlearn.driver.choice import check_claim_for_choice
from mdlearn.errors import ConvergenceWarning, FaultyPlugin, call_with_error_notes
from mdlearn.forms.certificates.primal import primal_objective
from mdlearn.forms.margin import Point
from mdlearn.forms.problem import ColumnProblem, Form, Problem, problems_of
from mdlearn.model.model import Model
from mdlearn.model.task import task_of
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.seeds import seeded_rng
from mdlearn.plugins.registry import registered_solver, registry
from mdlearn.solvers.base import Offer, Report, Solver
from mdlearn.testing.reference import (
    GAMMA,
    ROUNDING,
    TOL,
    reference_form,
    reference_of_rows,
    reference_sample,
    reference_task,
    reference_title,
)
from mdlearn.testing.require import require, require_clauses
from mdlearn.testing.solver_objectives import solver_trial_objectives

MOST_OBJECTIVES = 3
"""Objectives, among those that a solver takes, on whose problems it is tried."""
SIZES = (8, 36)
"""Rows of the problems, in the order in which a solver is tried."""
EXACT_GAP = 1e-8
"""Gap that a solver which promises every tolerance has to reach on so few rows."""
MOST_HEARTBEATS = 10_000
"""Heartbeats between two reports, on so few rows, from which a solver does not come to an end."""
MOST_REPORTS = 50
"""Reports on one problem that are compared with their points."""
ESTIMATE = 1e-6
"""Difference of a report's values from what they should be that is taken for rounding, relative to the objective."""
INEXACT_SHARE = 0.5
"""Share of the way from w = 0 to the optimum that a solver which promises no optimum has to come."""
VARIANTS: tuple[tuple[str, int, bool, dict[str, Any]], ...] = (
    ("no bias", 2, False, {"bias": "none"}),
    ("no bias, weights 0 to 3", 2, True, {"bias": "none"}),
    ("regularized bias", 2, False, {"bias": "regularized"}),
    ("free bias", 2, False, {"bias": "free"}),
    ("no bias, three classes", 3, False, {"bias": "none"}),
    ("no bias, kernel rbf, weights 0 to 3", 2, True, {"bias": "none", "kernel": "rbf", "gamma": GAMMA}),
)
"""Words, number of classes, whether rows have weights, and settings of the problems, in order."""


@dataclass(frozen=True, eq=False)
class SolverTrial:
    """Small problem that a solver takes, as a trial of it."""

    words: str  # what the problem is, in messages
    form: Form
    arguments: tuple[Any, np.ndarray, np.ndarray]  # objective, X and y for `fit`
    settings: dict[str, Any]  # its other arguments

    def fitted(self, solver: Any) -> Model:
        """Model of this trial by a solver, to the last digit."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return fit(*self.arguments, solver=solver, tol=TOL, **self.settings)


def check_solver(solver: Any, objectives: Any = None) -> None:
    """Check an engine: its declaration, its claims, its end, its reports, the optimum, and that it repeats itself.

    Parameters
    ----------
    solver : str, class or instance
        A registered name, or a subclass of `mdlearn.Solver`; it is tried with its default options.
    objectives : iterable of names, classes or instances, optional
        Objectives that it may take. Default: all registered ones; it is tried on the first three that it takes, on few
        rows before many, without weights and bias before with them. One that is `exact` and sets `offsets` or
        `by_row` is tried on a regression and on terms that differ by row as well.

    Raises
    ------
    AssertionError
        One sentence: the clause that does not hold, and the smallest problem on which it does not.
    """
    found = registry().solvers[solver] if isinstance(solver, str) else solver
    engine = registered_solver(found)
    title = f"solver {engine.name!r}"
    require_clauses(title, (solver_declares_options,), engine)
    # Other plugins' objectives that fail by themselves are no fault of the engine.
    refusals = Exception if objectives is None else ValueError
    chosen = list(registry().objectives if objectives is None else objectives)
    trials = _trials_of_solver(engine, _solver_trials_of_objectives(chosen, refusals))
    for declared in solver_trial_objectives(engine) if objectives is None and trials and engine.exact else ():
        small = (one for one in _solver_trials_of_objectives(declared, ValueError) if len(one.arguments[2]) == SIZES[0])
        trials += _trials_of_solver(engine, small, 1)
    require_clauses(title, (solver_claims_what_it_takes,), engine, _solver_trials_of_objectives(chosen, refusals))
    tried = "no registered objective" if objectives is None else f"none of {', '.join(map(reference_title, chosen))}"
    require(bool(trials), f"{title}: {tried}, at its defaults, is a problem that it takes")
    require_clauses(title, SOLVER_CLAUSES, engine, trials)


def solver_declares_options(engine: Solver) -> None:
    """Check the declaration of an engine: its purpose, and that options outside of it are refused."""
    require(len(str(engine.purpose).splitlines()) == 1, "purpose needs to be one line of text; `solvers` prints it")
    options = CheckedEngine(engine).check_options({})
    require(options.keys() == engine.options.keys(), f"check_options({{}}) returns {options}, not {engine.options}")
    try:
        engine.check_options({"no_such_option": 1.0})
    except ValueError:
        return
    require(False, "check_options accepts no_such_option; let Solver.check_options look at the names first")


def solver_claims_what_it_takes(engine: Solver, trials: Iterable[SolverTrial]) -> None:
    """Check the claims of an engine: operations > 0 with a reason, for forms that it takes, and always the same."""
    for trial in trials:
        claims = []
        for _ in range(2):
            claim = call_with_error_notes(engine, "solver", "claims", trial.form)
            if claim is not None:
                try:
                    check_claim_for_choice(engine, claim, trial.form)
                except FaultyPlugin as error:
                    require(False, f"{trial.words}: {error}")
            claims.append(claim)
        require(
            claims[0] == claims[1],
            f"{trial.words}: it claims {claims[0]}, and then {claims[1]}; a claim depends on the form alone",
        )


def solver_comes_to_an_end(engine: Solver, trials: list[SolverTrial]) -> None:
    """Check that an engine either reports or ends, and that its arithmetic does not fail."""
    for trial in trials:
        for _ in _solver_trial_reports(engine, trial):
            pass


def solver_reports_its_points(engine: Solver, trials: list[SolverTrial]) -> None:
    """Check that an engine's reports have the objective of their own points, and bounds below the optimum."""
    for trial in trials:
        parts = _solver_trial_optima(engine, trial)
        for n, (j, problem, report) in enumerate(_solver_trial_reports(engine, trial)):
            where, (value, low) = f"{trial.words}: report {n}", parts[j]
            room = ESTIMATE * max(abs(value), 0.01 * abs(problem.at_zero), np.finfo(float).tiny)
            true = _solver_trial_value(problem, report)
            require(
                abs(report.objective - true) <= ESTIMATE * max(abs(true), abs(problem.at_zero)),
                f"{where} has the objective {report.objective:.10g}, but at its point it is {true:.10g}; report the "
                "values of the point that is handed in, best by mdlearn.extend.report_of",
            )
            require(
                report.objective >= low - room,
                f"{where} has the objective {report.objective:.10g}, below the optimum {low:.10g}",
            )
            require(
                report.lower_bound <= value + room,
                f"{where} has the bound {report.lower_bound:.10g}, above the optimum {value:.10g}; multipliers "
                "outside their boxes make no bound",
            )


def solver_reaches_the_optimum(engine: Solver, trials: list[SolverTrial]) -> None:
    """Check the certificate of an engine's answer: the optimum, or where it promises none, a good part of the way."""
    for trial in trials:
        model, problems = trial.fitted(engine), problems_of(trial.form)
        certificate = model.certificate
        if engine.reaches(trial.form) and certificate.gap <= EXACT_GAP:
            continue
        optimum = sum(problem.unit * part[0] for part, problem in zip(_solver_trial_optima(engine, trial), problems))
        if engine.reaches(trial.form):
            value, gap = certificate.objective, certificate.gap
            told = f"{trial.words}: it ends at the objective {value:.10g} with the gap {gap:.2g}"
            require(
                value - optimum > EXACT_GAP * abs(optimum),
                f"{told}; that objective is the optimum's, so beta or sigma of its point are wrong; at the optimum "
                "they are column.slopes(scores) and column.spread(scores), or multipliers that make its coefficients",
            )
            require(False, f"{told}, where the optimum {optimum:.10g} can be reached to rounding")
        zero = sum(float(problem.unit * problem.at_zero) for problem in problems)
        require(
            certificate.objective <= zero - INEXACT_SHARE * (zero - optimum),
            f"{trial.words}: it ends at the objective {certificate.objective:.10g}; at w = 0 it is {zero:.10g}, at the "
            f"optimum {optimum:.10g}",
        )


def solver_repeats_itself(engine: Solver, trials: list[SolverTrial]) -> None:
    """Check that an engine gives the same bits twice, whatever was solved between, and leaves global generators."""
    kept: Any = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        for trial in trials:
            answers = []
            for seed in (1, 2):
                np.random.seed(seed)  # noqa: NPY002
                random.seed(seed)
                before = _solver_trial_generators()
                answers.append(trial.fitted(engine).decision_function(trial.arguments[1]))
                require(
                    before == _solver_trial_generators(),
                    f"{trial.words}: it draws from a global generator; the argument rng is the one to draw from",
                )
                trials[-1].fitted(engine)
            require(
                np.array_equal(answers[0], answers[1]),
                f"{trial.words}: two fits of the same problem give other bits; draw from rng alone and keep nothing "
                "from one fit to the next",
            )
    finally:
        np.random.set_state(kept[0])  # noqa: NPY002
        random.setstate(kept[1])


SOLVER_CLAUSES = (solver_comes_to_an_end, solver_reports_its_points, solver_reaches_the_optimum, solver_repeats_itself)
"""Clauses of the contract of engines, in the order in which `check_solver` goes through them."""


def _trials_of_solver(engine: Solver, trials: Iterable[SolverTrial], most: int = MOST_OBJECTIVES) -> list[SolverTrial]:
    """Small problems that an engine takes, of the first few objectives, the smallest ones first."""
    found: dict[str, list[SolverTrial]] = {}
    for trial in trials:
        if engine_takes_form(type(engine), trial.form):
            name = reference_task(trial.arguments[0]).name
            if name not in found and len(found) == most:
                break
            found.setdefault(name, []).append(trial)
    return [trial for mine in found.values() for trial in mine]


def _solver_trials_of_objectives(objectives: Iterable[Any], refusals: type[Exception]) -> Iterator[SolverTrial]:
    """Small problems of objectives for a solver, whether it takes them or not; none where making one ends so."""
    for objective, rows in product(objectives, SIZES):
        own = reference_of_rows(objective, slice(rows))
        task = reference_task(own)
        for words, k, weighted, settings in VARIANTS:
            if k > 2 and not {"ovr", "joint"} & set(task_of(task).ways(task.multiclass)):
                continue
            if "kernel" in settings and not task.kernels:
                continue
            X, y, counts = (one[:rows] for one in reference_sample(objective, k))
            given = {**settings, "sample_weight": counts} if weighted else dict(settings)
            if k > 2:
                given["multiclass"] = "ovr" if "ovr" in task.multiclass else "joint"
            try:
                kernel = settings.get("kernel", "linear")
                form = reference_form(task, X, y, settings["bias"], kernel, counts if weighted else None)
            except refusals:  # the objective knows no such problem
                continue
            yield SolverTrial(f"{task.name}, {len(X)} rows, {words}", form, (own, X, y), given)


def _solver_trial_reports(engine: Solver, trial: SolverTrial) -> Iterator[tuple[int, Problem, Report]]:
    """Reports of an engine with the numbers of their problems; too many heartbeats are a fault."""
    checked, form = CheckedEngine(engine), trial.form
    options = checked.check_options({})
    shared = finished(checked.prepare_next(form, options, None, 1))
    for j, problem in enumerate(problems_of(form)):

        def reports(j: int = j, problem: Problem = problem) -> Iterator[tuple[int, Problem, Report]]:
            heartbeats = 0
            for step in checked.reports(form, problem, shared, options, seeded_rng(j)):
                report = step.make() if isinstance(step, Offer) else step
                if report is not None:
                    heartbeats = 0
                    yield j, problem, report
                    continue
                heartbeats += 1
                require(
                    heartbeats <= MOST_HEARTBEATS,
                    f"{trial.words}: {heartbeats} heartbeats without a report; report a point, or end",
                )

        yield from islice(reports(), MOST_REPORTS)
        require(not checked.broke, f"{trial.words}: its work {checked.broke}")


def _solver_trial_generators() -> tuple[bytes, int, Any]:
    """States of the global generators, from which no solver draws."""
    state: Any = np.random.get_state()  # noqa: NPY002
    return state[1].tobytes(), state[2], random.getstate()


def _solver_trial_value(problem: Problem, report: Report) -> float:
    """Objective at the coefficients of a solver's point; as reported where it has none of its own."""
    point = report.point
    if not isinstance(problem, ColumnProblem) or not isinstance(point, Point) or point.coef is None:
        return report.objective
    form, column = problem.form, problem.part
    z = column.y * (form.features.decision(point.coef) + point.intercept)
    return primal_objective(column, z, form.norm(point.coef, point.intercept))[0]


def _solver_trial_optima(engine: Solver, trial: SolverTrial) -> list[tuple[float, float]]:
    """Objective and lower bound of every problem of a solver's trial, by solver "auto", in the units of reports."""
    own = getattr(trial.form, "engine", None) == engine.name  # a problem that no other engine takes
    certificate = trial.fitted(engine if own else "auto").certificate
    require(
        certificate.gap <= ROUNDING or not certificate.proven,
        f"{trial.words}: solver 'auto' ends at the gap {certificate.gap:.2g}, so that nothing can be compared",
    )
    return [
        (part.objective / problem.unit, part.lower_bound / problem.unit)
        for part, problem in zip(certificate.parts or (certificate,), problems_of(trial.form))
    ]
