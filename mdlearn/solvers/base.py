"""Base class of solvers: a coroutine that hands in points, driven by `mdlearn.driver.driver`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from mdlearn.errors import did_you_mean
from mdlearn.forms.joint.pair_stack import PairStack
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.report import Claim, Offer, Report, Reports, Steps

__all__ = ["NOT_BY_ROW", "Claim", "Offer", "Report", "Reports", "Solver", "Steps"]

NOT_BY_ROW = "it reads one weight and one threshold per loss term, and these differ from row to row"
"""Refusal of engines that know no weights or thresholds of loss terms by row."""


class Solver:
    """Base class of all solvers, which are the engines of a fit.

    An engine takes a MarginForm column by column. Work goes on in pieces of about 20 ms between two yields: that is
    where the driver looks at signals, clock and callback, so no engine has code for any of them. With several threads,
    columns are in work at the same time, and a piece may run in another thread than the last one: what `prepare`
    returned and the engine itself are read only then, and no context (``np.errstate``) is held across a yield.

    Attributes
    ----------
    name : str
        The name users give as ``solver=``.
    purpose : str
        One line for the listing of engines.
    options : dict
        Names and defaults of ``solver_options``.
    default_max_iter : int
        Number of reports after which the driver gives up when the user sets no ``max_iter``.
    exact : bool
        Whether it reaches any `tol` that rounding allows, in reasonable time, on every problem it takes. Not so:
        methods that end where a paper says, or that crawl on problems of bad condition.
    kinds : frozenset of str
        Kinds of loss terms that it takes: "hinge" and "squared" (hinges of power 1 and 2), "constraint" (of infinite
        weight), "logistic", "given" and "native".
    claims_only : str
        Only forms of one kind are to be claimed, if any: "other features" (than plain rows), "no ridge", "penalised" or
        "quadratic". With "", the default, any form may be. For others mdlearn's own engines are not asked.
    needs_ridge : bool
        Whether it needs the squared norm in the objective.
    offsets : bool
        Whether it takes margins with an offset (regression).
    by_row : bool
        Whether it takes loss terms whose weights and thresholds differ from row to row (`Column.by_row`): it reads
        `caps`, `softness`, `kinks`, `slopes` and the like of a column, and not the numbers of its terms.
    merges_equal_rows : bool
        Whether a kernel problem of many equal rows is better solved for a row of each group, as heavy as all of it:
        that is the one `claims` is asked for, and the one whose arrays have to fit.
    draws : bool
        Whether `iterate` draws random numbers. Not so: it gets None for its generator, whose making would cost as much
        as much of a small fit. Derived classes draw unless they say it anew.
    takes_tol : bool
        Whether `iterate` takes a last argument `tol`, the relative gap that is asked for: steps that would have to be
        offered one by one need not be. A class with an `iterate` of its own says it anew.
    takes_blocks : bool
        Whether it goes over row blocks, epoch by epoch: it has `begin_blocks`, `over_block`, a `block_state`, and an
        option ``epochs``.
    block_state : type
        A dataclass of arrays and numbers with a property `current`, the coefficients and the intercept in one array:
        what lies between two blocks, and in a checkpoint.
    """

    name: ClassVar[str]
    purpose: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    default_max_iter: ClassVar[int] = 1000
    exact: ClassVar[bool] = True
    kinds: ClassVar[frozenset[str]] = frozenset({"hinge", "squared", "constraint"})
    claims_only: ClassVar[str] = ""
    needs_ridge: ClassVar[bool] = True
    offsets: ClassVar[bool] = False
    by_row: ClassVar[bool] = False
    merges_equal_rows: ClassVar[bool] = False
    draws: ClassVar[bool] = True
    takes_tol: ClassVar[bool] = False
    takes_blocks: ClassVar[bool] = False
    block_state: ClassVar[type]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        # Not inherited: an engine on top of one that draws nothing may draw.
        own = vars(cls)
        cls.draws = own.get("draws", True)
        maker = next(one for one in cls.__mro__ if "iterate" in vars(one))
        cls.takes_tol = own.get("takes_tol", maker is not cls and getattr(maker, "takes_tol", False))
        if maker is cls and "takes_stack" not in own:
            cls.takes_stack = Solver.takes_stack  # type: ignore[method-assign]

    def refusal(self, form: Any) -> str | None:
        """Return why this engine cannot take the form, or None when it can.

        Here: what follows from `kinds`, `needs_ridge`, `offsets` and `by_row`. Engines with further needs ask this one
        first.

        Parameters
        ----------
        form : MarginForm or Problem

        Returns
        -------
        str or None
            Half a sentence that begins with "it".
        """
        if not isinstance(form, MarginForm):
            return "it needs an objective declared by margins; this one brings its own gradient"
        if form.penalty > 0 or form.coefficient_terms:
            return "it knows no penalty on coefficients beside the squared norm"
        if form.joint:
            return "it solves one class at a time; give multiclass='ovr'"
        if form.ridge == 0 and self.needs_ridge:
            return "it needs the squared norm in the objective"
        if form.offsets and not self.offsets:
            return "it knows no targets of regression"
        if form.by_row and not self.by_row:
            return NOT_BY_ROW
        return None if form.kinds <= self.kinds else f"it takes no loss of the kind {min(form.kinds - self.kinds)!r}"

    def takes_stack(self, stack: PairStack, options: dict[str, Any], tol: float) -> bool:
        """Return whether `prepare` and `iterate` take many pairs of classes in one, instead of one after the other.

        Here: no. `iterate` gets the stack as its form and as its column, and each of its reports has a PairPoint. Pairs
        whose certificates do not meet `tol` are solved on their own afterwards. A class with an `iterate` of its own
        says it anew.

        Parameters
        ----------
        stack : PairStack
        options : dict
            Complete, as `check_options` returned them.
        tol : float
            The relative gap that is asked for.

        Returns
        -------
        bool
        """
        return False

    def claims(self, form: Any) -> Claim | None:
        """Return what a fit of the form costs, for ``solver="auto"``; None: do not choose this engine.

        Where no engine claims a form, the first exact one that takes it is chosen.

        Parameters
        ----------
        form : MarginForm or Problem
            Any form: what `refusal` refuses is not to be claimed.

        Returns
        -------
        Claim or None
        """
        return None

    def reaches(self, form: Any) -> bool:
        """Whether the promise of `exact` holds for this form.

        Parameters
        ----------
        form : MarginForm or Problem

        Returns
        -------
        bool
        """
        return self.exact

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Raise InsufficientMemory when the engine's own arrays would not fit.

        Parameters
        ----------
        form : MarginForm
        at_once : int, default 1
            Number of columns that are in work at the same time.
        """

    def require_memory(self, form: MarginForm, options: dict[str, Any], at_once: int) -> None:
        """Do the same with options that say how much memory may be taken; here: as without.

        Parameters
        ----------
        form, at_once
            As for `check_memory`.
        options : dict
            Complete, as `check_options` returned them.
        """
        self.check_memory(form, at_once)

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return all options with defaults filled in.

        Parameters
        ----------
        given : dict
            The user's `solver_options`.

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            For an unknown name; the message lists the valid ones.
        """
        for name in given:
            if name not in self.options:
                valid = ", ".join(self.options) or "none"
                hint = did_you_mean(name, self.options)
                raise ValueError(f"solver {self.name!r} has no option {name!r}; valid solver_options: {valid}{hint}")
        return {**self.options, **given}

    def begin_blocks(
        self, form: MarginForm, column: Column, options: dict[str, Any], n_rows: int, rng: np.random.Generator
    ) -> Any:
        """Return where an engine that `takes_blocks` begins on a column.

        Parameters
        ----------
        form : MarginForm
            The problem over the first block, whose weights are scaled to the sum of all.
        column : Column
            Of that form.
        options : dict
            Complete, as `check_options` returned them.
        n_rows : int
            Rows of all blocks.
        rng : numpy.random.Generator

        Returns
        -------
        object
            A `block_state`.
        """
        raise NotImplementedError(f"solver {self.name!r} takes no row blocks")

    def over_block(self, state: Any, form: MarginForm, column: Column, rng: np.random.Generator) -> Any:
        """Return where an engine that `takes_blocks` is after one more block.

        Parameters
        ----------
        state : object
            What `begin_blocks` or the last call returned; it is left as it is.
        form : MarginForm
            The problem over this block, whose weights are scaled to the sum of all.
        column : Column
            Of that form.
        rng : numpy.random.Generator
            The same for the same block of the same epoch.

        Returns
        -------
        object
            A `block_state`.
        """
        raise NotImplementedError(f"solver {self.name!r} takes no row blocks")

    def ends_itself(self, options: dict[str, Any]) -> bool:
        """Whether, with these (complete) options, the engine is a published method that runs to an end of its own.

        It then gets there whatever the gap is, its best point is the answer as it stands, and a gap above `tol` is
        worth a warning only when the user gave `tol`.

        Parameters
        ----------
        options : dict
            Complete, as `check_options` returned them.

        Returns
        -------
        bool
        """
        return False

    def gives_last(self, options: dict[str, Any]) -> bool:
        """Whether the last point is the answer, however good others are: for a published stop rule that is asked for.

        Parameters
        ----------
        options : dict
            Complete, as `check_options` returned them.

        Returns
        -------
        bool
        """
        return False

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Compute what all columns share (Gram matrix, factorisations); here nothing.

        Parameters
        ----------
        form : MarginForm
        options : dict
            Complete, as `check_options` returned them.

        Returns
        -------
        generator
            Yields None about every 20 ms, and returns what `iterate` gets as `shared`.
        """
        return None
        yield  # what makes this a generator

    def prepare_next(
        self, form: MarginForm, options: dict[str, Any], before: Any, left: int
    ) -> Generator[None, None, Any]:
        """Do the same for the next of several forms over the same features; here: as for any form.

        Parameters
        ----------
        form, options
            As for `prepare`.
        before : object
            What this method returned for the form before; None for the first, or where another engine took that.
        left : int
            Number of forms still to come, this one included; 1 for a single fit.

        Returns
        -------
        generator
            As `prepare` returns it.
        """
        return self.prepare(form, options)

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield reports of ever better points of one column; end when rounding allows no better one.

        Parameters
        ----------
        form : MarginForm
        column : Column
            The one to solve: signs, counts, terms, and perhaps a start.
        shared : object
            What `prepare` returned, to be read only.
        options : dict
            Complete, as `check_options` returned them.
        rng : Generator
            The only source of random numbers; None for an engine that `draws` none.

        Yields
        ------
        Report, Offer or None
            None is a heartbeat: work goes on. An Offer is one with a point. One of them about every 20 ms.

        Returns
        -------
        bool or None
            Whether a follower should go on, which mdlearn names for some of its own engines; of others, nothing.
        """
        raise NotImplementedError
