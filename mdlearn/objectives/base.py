"""The base class of objectives."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.features.kernel_features import Features, features_of_kernel
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.validation import Data
from mdlearn.errors import call_with_error_notes, class_is_foreign, with_error_notes
from mdlearn.forms.losses import Terms
from mdlearn.forms.margin import Column, MarginForm, columns_of_classes
from mdlearn.forms.problem import Form
from mdlearn.forms.proof import Solution, Start, ZeroProof
from mdlearn.forms.row_terms import RowTerms
from mdlearn.objectives.declaration.grids import grid_of_loss_weight
from mdlearn.objectives.declaration.parameters_and_terms import (
    FIT_ARGUMENTS,
    Parameter,
    Setting,
    declared_need_of_all_rows,
    declared_objective_terms,
    declared_row_terms,
    fill_declared_parameters,
    one_of,
    validate_declared_values,
)

__all__ = ["FIT_ARGUMENTS", "Objective", "Parameter", "Setting", "Terms", "one_of"]


class Objective:
    """Base class of objectives: declare `name`, `summary`, `parameters` and write `terms`.

    Parameters
    ----------
    **given : float
        Values of the declared parameters; the rest take their defaults at fit.

    Raises
    ------
    ValueError, TypeError
        For an unknown parameter (the message lists the valid ones) or a value out of range.

    Attributes
    ----------
    aliases : mapping
        Other names of parameters, under which they can be given as well.
    kernels : bool
        Whether it takes kernels other than linear.
    needs_rows : bool
        Whether it needs the rows themselves: then a precomputed kernel will not do.
    probabilities : bool
        Whether sigma(f) is a probability: models then have `predict_proba`.
    feature_map : type or None
        Class of the feature map that `features` makes, which model files are read with; None: it makes none.
    feature_parameters : tuple of str, or None
        Names of the parameters that `features` reads: along a path, points that differ in others share their features.
        None: it reads none, or all where it is written anew.
    task : str or Task
        "classification", or "regression": y then holds numbers, and z in `terms` is the residual f(x) - y. A plugin may
        bring another one (`mdlearn.extend.Task`).
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    parameters: ClassVar[Mapping[str, Parameter | Setting]] = {}
    aliases: ClassVar[Mapping[str, str]] = {}
    default_bias: ClassVar[str] = "regularized"
    multiclass: ClassVar[tuple[str, ...]] = ("ovr", "ovo", "fuzzy-min", "fuzzy-avg")
    kernels: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = False
    probabilities: ClassVar[bool] = False
    task: ClassVar[Any] = "classification"
    feature_map: ClassVar[type[FeatureMap] | None] = None
    feature_parameters: ClassVar[tuple[str, ...] | None] = None

    def __init__(self, **given: Any) -> None:
        own = type(self)
        if own.row_terms is not Objective.row_terms and own.form is not Objective.form:
            raise TypeError(
                f"objective {own.name!r} has row_terms and a form of its own, which does not read them; give its "
                "columns by_row=RowTerms(...) there"
            )
        self.given = validate_declared_values(self, given) if given or class_is_foreign(own) else given

    def resolve(self, total: float) -> dict[str, Any]:
        """Return all parameters; defaults that depend on m or on earlier parameters are filled in.

        Parameters
        ----------
        total : float
            m, the sum of the weights.

        Returns
        -------
        dict
            A value for every declared parameter.
        """
        return fill_declared_parameters(self, total)

    def grid(self, total: float) -> Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]:
        """Return the grid that paths and selection take by default; values given to this instance are left as they are.

        Here: the weight of the loss (C, nu or lam, whichever comes first), seven values from a thousandth of its
        default to a thousand times that.

        Parameters
        ----------
        total : float
            m, the sum of the weights.

        Returns
        -------
        mapping or sequence of mappings
            As `mdlearn.fit_path` takes it.

        Raises
        ------
        ValueError
            When there is nothing to choose.
        """
        return grid_of_loss_weight(self, total)

    def complete(self, params: dict[str, Any], data: Data) -> dict[str, Any]:
        """Return resolved parameters with the defaults that depend on the rows filled in; here: as they are.

        Parameters
        ----------
        params : dict
            What `resolve` returned.
        data : Data
            Checked rows, class indices and counts.

        Returns
        -------
        dict
        """
        return params

    def features(
        self, data: Data, kernel: Kernel, params: dict[str, Any], rng: np.random.Generator
    ) -> Generator[None, None, Features]:
        """Make the features of training rows, in interruptible pieces: here, those of the kernel.

        Parameters
        ----------
        data : Data
            Checked rows, class indices and counts.
        kernel : Kernel
        params : dict of resolved parameters
        rng : Generator
            The only source of random numbers.

        Returns
        -------
        generator
            Yields None about every 20 ms, and returns Features.
        """
        return features_of_kernel(data.X, kernel)
        yield  # what makes this a generator

    def own_features(self, params: dict[str, Any]) -> bool:
        """Whether `features` makes others than those of the kernel; here: where a class has a method of its own.

        Parameters
        ----------
        params : dict of resolved parameters

        Returns
        -------
        bool
        """
        return type(self).features is not Objective.features

    def features_depend_on(self, params: dict[str, Any]) -> dict[str, Any]:
        """Of resolved parameters, those that `features` reads: where they are equal, fits share their features.

        Parameters
        ----------
        params : dict of resolved parameters

        Returns
        -------
        dict
        """
        names = self.feature_parameters
        if names is None:
            names = tuple(params) if self.own_features(params) else ()
        return {name: params[name] for name in names}

    def problem(
        self,
        data: Data,
        features: Features,
        kernel: Kernel,
        bias: str,
        params: dict[str, Any],
        solve: Callable[[Form], list[Solution]],
    ) -> Generator[None, Any, Form]:
        """Make the form, in interruptible pieces.

        Parameters
        ----------
        data : Data
            Checked rows, class indices and counts.
        features : Features
            What `features` made of the training rows.
        kernel : Kernel
        bias : {"none", "regularized", "free"}
        params : dict of resolved parameters
        solve : callable
            solve(form) returns the Solutions of another form, for objectives that need them first.

        Returns
        -------
        generator
            Yields None about every 20 ms, and returns the form.
        """
        return call_with_error_notes(self, "objective", "form", data, features, bias, params)
        yield  # what makes this a generator

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Return the binary problem for resolved parameters.

        Parameters
        ----------
        params : dict of resolved parameters
        total : float
            m, the sum of the weights.

        Returns
        -------
        Terms
        """
        raise NotImplementedError

    def row_terms(self, data: Data, params: dict[str, Any]) -> RowTerms | None:
        """Return weights and thresholds of the loss terms in single rows; here: None, they are the same in all.

        Parameters
        ----------
        data : Data
            Checked rows, class indices, counts and targets; `mdlearn.extend.row_values` takes numbers that the caller
            gave for every row of X.
        params : dict of resolved parameters

        Returns
        -------
        RowTerms or None
        """
        return None

    def at_zero(self, params: dict[str, Any], total: float) -> ZeroProof | None:
        """Return what is known at w = 0 of rows of weight `total`; None where that takes the form.

        Parameters
        ----------
        params, total
            As for `terms`.

        Returns
        -------
        ZeroProof or None
        """
        if overrides_objective_base(self, "form", "problem", "row_terms"):
            return None
        return declared_objective_terms(self, params, total).at_zero(total)

    def check_column(self, params: dict[str, Any], column: Column, bias: str) -> None:
        """Raise ValueError when the problem has no optimum for these signs and counts.

        Parameters
        ----------
        params : dict of resolved parameters
        column : Column
            Signs, counts and terms of one problem.
        bias : {"none", "regularized", "free"}
        """

    def form(self, data: Data, features: Features, bias: str, params: dict[str, Any]) -> Form:
        """Write the form: one column for two classes or for numbers, one per class against the rest for more.

        Parameters
        ----------
        data : Data
        features : Features
            What `features` made.
        bias : {"none", "regularized", "free"}
        params : dict of resolved parameters

        Returns
        -------
        MarginForm or Problem

        Raises
        ------
        FaultyPlugin
            When `row_terms` returns something else than RowTerms or None, or other shapes.
        """
        terms = declared_objective_terms(self, params, data.total)
        own = type(self).row_terms is not Objective.row_terms
        by_row = declared_row_terms(self, params, terms.loss, data) if own else None
        if by_row is None:
            columns = columns_of_classes(data, terms)
        else:  # what is wrong with the numbers, columns say
            columns = with_error_notes(self, "objective", "row_terms", columns_of_classes, data, terms, by_row)
        for column in columns if type(self).check_column is not Objective.check_column else ():
            call_with_error_notes(self, "objective", "check_column", params, column, bias)
        weights = terms.ridge, terms.unit, terms.penalty
        return MarginForm(features, columns, bias, *weights, coefficient_terms=terms.coefficient_terms)

    def place(
        self, data: Data, params: dict[str, Any], rng: np.random.Generator
    ) -> Generator[None, Any, FeatureMap | None]:
        """Find the map that makes features of rows, from some of them: what rows that come in blocks go through.

        Asked for where `feature_map` names a class and `needs_all_rows` has no reason against it.

        Parameters
        ----------
        data : Data
            All rows where they are few, else a sample.
        params : dict
            What `complete` made of these rows.
        rng : Generator
            The only source of random numbers.

        Returns
        -------
        generator
            Yields None about every 20 ms, and returns a FeatureMap.
        """
        return None
        yield  # what makes this a generator

    def needs_all_rows(self, params: dict[str, Any]) -> str:
        """Why row blocks will not do; empty when they do.

        A class whose `row_terms` say of a row what follows from that row alone (its entries, its label or target, what
        `row_values` picks for it) returns "": they are then asked for block by block.

        Parameters
        ----------
        params : dict of resolved parameters

        Returns
        -------
        str
        """
        return declared_need_of_all_rows(type(self), Objective)

    def check_form(self, form: Form, params: dict[str, Any]) -> None:
        """Raise ValueError when a form, complete and about to be solved, has no optimum.

        Parameters
        ----------
        form : MarginForm or Problem
        params : dict of resolved parameters
        """

    def starts_of(self, starts: Sequence[Start], form: Form) -> Sequence[Start]:
        """Return starts by class and row of X as those of a form that has other rows or columns; here: as they are.

        Parameters
        ----------
        starts : sequence of Start
            One per class, or those of the form itself.
        form : MarginForm or Problem

        Returns
        -------
        sequence of Start
        """
        return starts

    def arranged(self, solution: Solution, form: Form) -> Solution:
        """Return a solution by class and row of X, for a form that has other rows or columns; here: as it is.

        Parameters
        ----------
        solution : Solution
            That of the form.
        form : MarginForm or Problem

        Returns
        -------
        Solution
        """
        return solution


def overrides_objective_base(task: Objective, *methods: str) -> bool:
    """Whether an objective's class writes one of these methods of the base class anew."""
    return any(getattr(type(task), name) is not getattr(Objective, name) for name in methods)
