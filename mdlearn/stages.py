"""The stages of a fit: arguments, then data, kernel and hyper-parameters, then forms, engine and model.

`fit` goes through them once, `fit_path` once for every point of its grid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mdlearn.data.class_pairs import ClassPairProblems
from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.features.kernel_approximation import approximate_kernel, check_kernel_approximation
from mdlearn.data.features.kernels import ARGUMENTS, Kernel, make_kernel, split_kernel_parameters
from mdlearn.data.kernel_functions import kernel_function_rows, kernel_function_takes_objects
from mdlearn.data.validation import Data, check_number
from mdlearn.driver.checked_form import arranged_form_solutions, check_form_solutions
from mdlearn.driver.choice import Choice, check_engine_takes, chosen_driver
from mdlearn.driver.driver import DriverOutcome, Prepared, Starts
from mdlearn.driver.limits import Limits, LimitShortfall
from mdlearn.errors import FaultyProblem, call_with_error_notes, class_is_foreign, did_you_mean, is_foreign
from mdlearn.form_making import FormMaker, PathCache
from mdlearn.forms.margin import BIASES
from mdlearn.forms.penalised.constraints import Constraints
from mdlearn.forms.problem import Form
from mdlearn.forms.proof import Solution, Start, starts_of
from mdlearn.model.build import StoredCoefficients, build_model, rows_used_by_models, stored_coefficients
from mdlearn.model.class_decisions import PAIRWISE
from mdlearn.model.file.schema import BUILT_IN_TASKS
from mdlearn.model.model import Model
from mdlearn.model.task import READERS, TASKS, Task, task_of
from mdlearn.numerics.blas_threads import threads_for_product
from mdlearn.numerics.errstate import in_errstate_of_caller, overflow_errstate
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.memory import raise_memory_error_in_words
from mdlearn.objectives.base import Objective
from mdlearn.objectives.declaration.parameters_and_terms import resolve_declared_parameters
from mdlearn.plugins.registry import find, registered_objective, registered_objective_with, registry, requested_solver
from mdlearn.solvers.base import Solver

LINEAR_KERNEL = Kernel("linear")
"""Kernel of all fits to rows as they are."""
MOST_THREADS = 1024
"""A larger number is a slip: BLAS would be asked to start them all."""


class DefaultTolerance(float):
    """Type of the default of fit's argument `tol`.

    An engine with a published end of its own warns of a larger gap only when `tol` was given. The type tells the
    default from the same number given on purpose, and the signature still shows the number.
    """


DEFAULT_TOL = DefaultTolerance(1e-6)


class DecisionTolerance(float):
    """Type of ``tol="decisions"``: a fit ends once its decisions are proven, and at the latest at this gap."""


def checked_limits(
    started: float,
    tol: Any,
    max_iter: Any,
    time_limit: Any,
    callback: Any,
    verbose: Any,
    n_threads: Any,
    decisions: bool = False,
) -> Limits:
    """Check fit's arguments tol, max_iter, time_limit, callback, verbose and n_threads; return the Limits of a fit.

    `decisions`: whether `tol` may be "decisions".
    """
    tol_given = not isinstance(tol, DefaultTolerance)
    if isinstance(tol, str) and tol == "decisions":
        if not decisions:
            raise ValueError("tol='decisions' is for single fits to rows in memory; give a number")
        tol = DecisionTolerance(1e-9)
    elif isinstance(tol, str) and (hint := did_you_mean(tol, ("decisions",))):
        raise TypeError(f"tol needs to be a number >= 0; got {tol!r}{hint}")
    else:
        tol = check_number(tol, "tol", low=0.0) if tol_given else float(tol)
    if max_iter is not None:
        max_iter = check_number(max_iter, "max_iter", low=1, integer=True)
    deadline = np.inf
    if time_limit is not None:
        deadline = started + check_number(time_limit, "time_limit", low=0.0)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback needs to be callable; got {callback!r}")
    if isinstance(verbose, (bool, np.bool_)):
        verbose = int(verbose)
    level = check_number(verbose, "verbose", low=0, integer=True)
    if n_threads is not None:
        n_threads = check_number(n_threads, "n_threads", low=1, high=MOST_THREADS, integer=True)
    return Limits(tol, tol_given, max_iter, started, deadline, callback, level, n_threads)


def checked_seed(random_state: Any) -> int:
    """Check fit's argument `random_state` and return a seed >= 0: None is 0, a generator gives its next number."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(check_number(random_state, "random_state", low=0, integer=True))


def checked_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value`, an argument of fit, or raise the ValueError that lists what the argument `name` can be."""
    if not isinstance(value, str) or value not in choices:
        told = ", ".join(choices)
        raise ValueError(f"{name} {value!r} is not possible here; give one of {told}{did_you_mean(value, choices)}")
    return value


@dataclass(eq=False)
class Call:
    """First stage of a fit: its arguments beside data and hyper-parameters, checked before any work.

    `kernel`, `maker`: the kernel as given, and what makes it.
    """

    objective: Any
    kind: Task  # how y is read, and the kind of the model
    kernel: Any
    maker: Any
    engine: Solver | None  # None: "auto"
    options: dict[str, Any]  # options of the engine, as given
    bias: str
    multiclass: str
    limits: Limits
    seed: int
    constraints: Constraints | None = None

    @classmethod
    def of(
        cls,
        objective: Any,
        kernel: Any,
        solver: Any,
        solver_options: Any,
        bias: Any,
        multiclass: Any,
        limits: Limits,
        seed: int,
    ) -> Call:
        """Look up names and check what can be checked; ValueError or TypeError says what is wrong."""
        found, maker = find("objective", objective), find("kernel", kernel)
        bias = checked_choice("bias", found.default_bias if bias is None else bias, BIASES)
        kind = TASKS[found.task] if found.task in BUILT_IN_TASKS else task_of(found)
        ways = found.multiclass if kind.by_class and kind.y == "labels" else kind.ways(found.multiclass)
        multiclass = checked_choice("multiclass", multiclass, ("auto", *ways))
        multiclass = ways[0] if multiclass == "auto" else multiclass
        engine, options = requested_solver(solver, solver_options)
        call = cls(found, kind, kernel, maker, engine, options, bias, multiclass, limits, seed)
        if found.needs_rows and call.square:
            raise ValueError(
                f"objective {found.name!r} needs rows, not kernel='precomputed'; give X and another kernel"
            )
        if kernel_function_takes_objects(maker):
            check_objects_suffice(found, maker)
        return call

    def rows(self, X: Any) -> Any:
        """Return X for the readers of data: objects as rows where the kernel compares such, else X itself."""
        return kernel_function_rows(self.maker, X) if kernel_function_takes_objects(self.maker) else X

    @property
    def square(self) -> bool:
        """Whether X is a Gram matrix."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def task(self, params: Mapping[str, Any]) -> tuple[Objective, dict[str, Any]]:
        """The objective with its hyper-parameters, checked, and those of the kernel, as given."""
        if not params.keys().isdisjoint(ARGUMENTS):
            check_kernel_approximation(self.kernel, params)
        name, approximate = self.objective.name, params.get("approximation") is not None
        if not self.objective.kernels and self.kernel != "linear" and not approximate:
            raise ValueError(f"objective {name!r} is linear; got kernel={self.kernel!r}, give kernel='linear'")
        if not params and isinstance(self.maker, str):
            return registered_objective_with(self.objective, params), {}
        if approximate and kernel_function_takes_objects(self.maker):
            told = f"kernel {self.maker.name!r} compares objects, of which no features are made"
            raise ValueError(f"{told}; leave out approximation")
        given, own, kernel_names = split_kernel_parameters(self.maker, dict(params), self.objective)
        task = registered_objective(self.objective, own, kernel_names)
        if approximate and task.feature_map is not None:
            raise ValueError(f"objective {name!r} makes features of its own; leave out approximation")
        return task, given

    def read(self, X: Any, y: Any, sample_weight: Any, class_weight: Any) -> CheckedCall:
        """Check the data."""
        square, pairs = self.square, None
        try:
            data = READERS[self.kind.y](self.rows(X), y, sample_weight, class_weight, square=square)
            if self.multiclass in PAIRWISE and data.classes.shape[0] > 2:
                in_order = self.objective.features is not Objective.features or self.kernel == "linear"
                pairs = ClassPairProblems(data, square, in_order)
        except MemoryError as error:
            raise_memory_error_in_words(error, "reading the data")
        return CheckedCall(self, data, pairs)


def check_objects_suffice(objective: Any, kernel: Any) -> None:
    """Check in the stages of a fit that an objective needs no numbers of rows, which a kernel of objects has not."""
    own = is_foreign(objective) and objective.features is not Objective.features
    if objective.needs_rows or objective.feature_map is not None or own:
        raise ValueError(
            f"objective {objective.name!r} needs rows of numbers, and kernel {kernel.name!r} compares objects; give "
            "another objective or another kernel"
        )


@dataclass(eq=False)
class Fitted:
    """Third stage of a fit: its solutions, from which the model follows."""

    task: Objective
    params: dict[str, Any]  # all hyper-parameters, those of the kernel included
    kernel: Kernel
    outcome: DriverOutcome
    solutions: list[Solution]  # as the objective arranges them
    mapping: FeatureMap | None  # what new rows go through
    ran: Choice  # the engine, and why it was chosen
    shortfalls: list[LimitShortfall]  # what was not reached

    def starts(self, form: Form, first: int, n: int) -> Sequence[Sequence[Start]]:
        """Return starts for problems first ... first + n - 1 of another fit to the same rows, of one form."""
        return [starts_of(one, form.features) for one in self.outcome.solutions[first : first + n]]


@dataclass(eq=False)
class CheckedCall:
    """Second stage of a fit: a call with its data, checked."""

    call: Call
    data: Data
    pairs: ClassPairProblems | None  # data of every pair of classes; None: all rows are one problem

    @property
    def pieces(self) -> ClassPairProblems | list[Data]:
        """Data of every problem."""
        return self.pairs or [self.data]

    @property
    def places(self) -> Sequence[np.ndarray]:
        """Positions of the rows of each problem among the caller's; holds none of the rows."""
        return [self.data.rows] if self.pairs is None else self.pairs.places

    @property
    def n_threads(self) -> int:
        """Number of threads of a fit: the one asked for, else by the size of the largest product."""
        asked, X = self.call.limits.n_threads, self.data.X
        (rows, columns), pairs = X.shape, self.pairs
        if pairs is not None:
            rows = pairs.largest
        if self.call.kernel != "linear":
            columns = rows
        elif X.sparse:
            rows = columns = min(rows, columns)  # products of sparse rows do not go through BLAS
        return asked or threads_for_product(rows, columns)

    def kernel(self, given: dict[str, Any]) -> Kernel:
        """The kernel with its parameters; an approximate one where that is asked for."""
        call, data = self.call, self.data
        if call.kernel == "linear":
            return LINEAR_KERNEL
        own = {name: value for name, value in given.items() if name not in ARGUMENTS}
        try:
            kernel = make_kernel(call.maker, own, data.X, data.counts)
            if given.get("approximation") is not None:
                how = given["approximation"], given.get("n_components")
                work = approximate_kernel(kernel, *how, data.X, data.counts, call.seed)
                kernel = finished(work, call.limits.late)
        except MemoryError as error:
            raise_memory_error_in_words(error, "the kernel")
        return kernel

    def complete(self, task: Objective) -> dict[str, Any]:
        """Hyper-parameters of the objective, defaults filled in."""
        return resolve_declared_parameters(task, self.data.total, self.data)

    def solve(
        self, task: Objective, filled: dict[str, Any], kernel: Kernel, handed: PathCache, limits: Limits | None = None
    ) -> Fitted:
        """Make the forms and run the engine; certificates tell of overflows, and NumPy warns of none meanwhile."""
        call, limits = self.call, limits or self.call.limits
        if limits.callback is not None:
            limits = replace(limits, callback=in_errstate_of_caller(limits.callback))
        shortfalls: list[LimitShortfall] = []

        def driven(form: Form, later: FormMaker | None, starts: Starts | None, known: Prepared) -> Any:
            solvers, asked = registry().solvers, (call.engine, call.options, form)
            driver, choice = chosen_driver(*asked, solvers, partial(find, "solver"), limits, call.seed, starts, known)
            if later is not None:  # a pair of classes may have other features than the first
                later = replace(later, check=partial(check_engine_takes, solvers, driver.engine))
            try:
                outcome = driver.run(form, later)
            except FaultyProblem as error:
                error.args = (f"objective {task.name!r} is faulty: {error}",)
                raise
            if outcome.shortfall is not None:
                shortfalls.append(outcome.shortfall)
            return outcome, choice

        def level(form: Form) -> list[Solution]:
            found: list[Solution] = driven(form, None, None, Prepared())[0].solutions
            return found

        several, own = self.pairs is not None, (task, filled, kernel, call.bias, call.multiclass, call.seed)
        turns = FormMaker(self.data, self.pairs, *own, handed, call.constraints, level)
        try:
            with overflow_errstate():
                form = finished(turns.make(0), limits.late)
                starts = None if handed.starts is None else _starts_of_objective(task, handed.starts)
                outcome, ran = driven(form, turns if several else None, starts, handed.prepared)
            solutions = outcome.solutions
            if not several and type(task).arranged is not Objective.arranged:
                solutions = arranged_form_solutions(task, solutions, form, self.data)
        except MemoryError as error:
            raise_memory_error_in_words(error, "the fit")
        if class_is_foreign(type(task)):
            check_form_solutions(task, solutions, form, self.data, several)
        exact = kernel if kernel.explicit is None else kernel.exact
        made = {**filled, **kernel.params}, exact, outcome, solutions, form.features.mapping()
        return Fitted(task, *made, ran, shortfalls)

    def builder(self, fits: Sequence[Fitted] = ()) -> Builder:
        """Return a `Builder` of models; with `fits`, of those alone, and from a copy of the rows that they need."""
        data, call = self.data, self.call
        if call.limits.callback is not None:  # a builder outlives the call, not its callback
            call = replace(call, limits=replace(call.limits, callback=None))
        builder = Builder(call, data, self.places)
        if not fits:
            return builder
        if self.call.square or any(one.solutions[0].coef is not None for one in fits):
            # Their models hold no rows, but know how many were support vectors.
            return replace(builder, data=replace(data, X=data.X.take(np.arange(0))))
        used = np.zeros(data.n_given, dtype=bool)
        for one in fits:
            used |= rows_used_by_models(one.solutions, builder.places_of(one), data.n_given)
        mine = np.flatnonzero(used[data.rows])
        labels = None if data.indicators is None else data.indicators[mine]
        kept = replace(data, X=data.X.take(mine), codes=data.codes[mine], rows=data.rows[mine], indicators=labels)
        return replace(builder, data=kept)


@dataclass(eq=False)
class Builder:
    """Last stage of a fit: maker of its model, from `data` with at least the rows that it needs."""

    call: Call
    data: Data
    places: Sequence[np.ndarray]

    def places_of(self, fitted: Fitted) -> Sequence[np.ndarray]:
        """Positions of the rows of every solution among the caller's."""
        places = self.places
        return places if len(places) == len(fitted.solutions) else [places[0]] * len(fitted.solutions)

    def stored_coefficients(self, fitted: Fitted) -> StoredCoefficients:
        """Coefficients, dual coefficients and intercepts that the decision values of a fit are made of."""
        return stored_coefficients(fitted.solutions, self.places_of(fitted), self.data.n_given, self.data.X.dtype)

    def model(self, fitted: Fitted) -> Model:
        """The model of a fit."""
        task, call, outcome, places = fitted.task, self.call, fitted.outcome, self.places_of(fitted)
        kinds = call.bias, call.multiclass, task.probabilities
        said = task.name, fitted.params, kinds, fitted.ran[:3], (outcome.n_iter, outcome.history), outcome.certificate
        made = fitted.solutions, self.data, places, fitted.kernel, fitted.mapping, call.kind.model
        try:
            return build_model(*said, *made)
        except MemoryError as error:
            raise_memory_error_in_words(error, "the model")


def _starts_of_objective(task: Objective, starts: Starts) -> Starts:
    """Starts for the stages of a fit, as the objective's forms need them."""

    def arranged(form: Form, first: int, n: int) -> list[Any]:
        return [call_with_error_notes(task, "objective", "starts_of", given, form) for given in starts(form, first, n)]

    return arranged
