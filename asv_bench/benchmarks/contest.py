"""A row of the table of peers: a fit, what it is measured against, and how their times are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

from threadpoolctl import threadpool_info

from .references import in_turn

COLUMNS = {"package": "best package", "numpy": "what a NumPy user writes", "floor": "floor"}
"""What a fit may be measured against: the columns of the table."""
SECONDS, TURNS = 6.0, 9
"""Seconds after which a side is not run again, and turns at most."""


def blas_threads() -> int:
    """The number of threads that BLAS takes; of several libraries, the largest."""
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


def clock() -> Callable[[], float]:
    """CPU time of the process where BLAS has one thread, else wall time: threads that wait burn CPU time."""
    return process_time if blas_threads() == 1 else perf_counter


@dataclass(frozen=True)
class Case:
    """One row of the table, or one for each of its goals.

    Attributes
    ----------
    workload, objective : str
    prepare : callable
        prepare() returns a Contest, or anything else with `lines`.
    """

    workload: str
    objective: str
    prepare: Callable[[], Any]


@dataclass(frozen=True)
class Rival:
    """Other work than mdlearn's.

    Attributes
    ----------
    column : {"package", "numpy", "floor"}
        Where it stands in the table.
    name : str
    call : callable
        Called without arguments.
    precision : str
        How far from the optimum of the same objective it ends, in words; empty where it solves nothing.
    goal : float or None
        Most that mdlearn's time may be, in units of this one's; None for a time that stands there for comparison.
    ran : bool
        Whether it has run before; otherwise it runs once unmeasured.
    """

    column: str
    name: str
    call: Callable[[], Any]
    precision: str = ""
    goal: float | None = None
    ran: bool = False


@dataclass(frozen=True)
class Line:
    """What is measured for one goal.

    Attributes
    ----------
    cells : dict
        What stands in the columns of COLUMNS.
    ours, gap, note : str
    ratio, goal : float or None
    held : bool
        Whether what the goal takes for granted holds (an accuracy, say).
    """

    cells: dict[str, str]
    ours: str
    gap: str
    ratio: float | None
    goal: float | None
    note: str = ""
    held: bool = True

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        if self.goal is None or self.ratio is None:
            return None
        return self.held and self.ratio <= self.goal


@dataclass(frozen=True)
class Contest:
    """A certified piece of work and its rivals, on the same data.

    Attributes
    ----------
    ours : callable
        Returns a Model; raises RuntimeError where its precision is missed.
    rivals : sequence of Rival
    call : callable, optional
        What is timed instead of `ours`: a prediction of its model.
    note : str
        What else there is to say.
    judge : callable, optional
        judge(model) returns what else was measured, in words, and whether it is as the goals demand.
    """

    ours: Callable[[], Any]
    rivals: Sequence[Rival]
    call: Callable[[], Any] | None = None
    note: str = ""
    judge: Callable[[Any], tuple[str, bool]] | None = None

    def lines(self) -> list[Line]:
        """Time all sides in turn, after each has run once; return a Line for every goal, or one."""
        model, now = self.ours(), clock()
        note, held = (self.note, True) if self.judge is None else self.judge(model)
        call = self.ours if self.call is None else self.call
        for first in [*([] if self.call is None else [call]), *(r.call for r in self.rivals if not r.ran)]:
            first()
        own, *others = in_turn([call, *(rival.call for rival in self.rivals)], SECONDS, TURNS, now)
        ratios = [median(a / b for a, b in zip(own, times)) for times in others]
        told = [_told(rival, median(times)) for rival, times in zip(self.rivals, others)]
        ours = f"`{model.solver}` {seconds(median(own))}"
        gap = f"{model.certificate.gap:.0e}"
        goals = [k for k, rival in enumerate(self.rivals) if rival.goal is not None] or [None]
        return [
            Line(
                {name: self._cell(name, told, k) for name in COLUMNS},
                ours,
                gap,
                None if k is None else ratios[k],
                None if k is None else self.rivals[k].goal,
                note,
                held,
            )
            for k in goals
        ]

    def _cell(self, column: str, told: list[str], chosen: int | None) -> str:
        """The rivals of one column; the one that the goal is about stands out."""
        mine = [k for k, rival in enumerate(self.rivals) if rival.column == column]
        return "; ".join(f"**{told[k]}**" if k == chosen else told[k] for k in mine)


def _told(rival: Rival, time: float) -> str:
    return f"{rival.name} {seconds(time)}" + (f" ({rival.precision})" if rival.precision else "")


def seconds(time: float) -> str:
    """A time in seconds or milliseconds."""
    return f"{time:.3g} s" if time >= 0.1 else f"{1000 * time:.3g} ms"


def certified(fit: Callable[[], Any], gap: float) -> Callable[[], Any]:
    """A fit that has to end with a certified gap."""

    def ours() -> Any:
        model = fit()
        if not model.certificate.gap <= gap:
            raise RuntimeError(f"mdlearn stopped at the gap {model.certificate.gap:.2g}, not {gap:g}")
        return model

    return ours


def reaching(call: Callable[[], Any], precision: Callable[[Any], float], name: str, most: float) -> str:
    """Run a rival, and say its precision in words; RuntimeError where it is worse than `most`."""
    found = precision(call())
    if not found <= most:
        raise RuntimeError(f"{name} stopped {found:.2g} from the optimum, not {most:g}")
    return f"{found:.0e}"
