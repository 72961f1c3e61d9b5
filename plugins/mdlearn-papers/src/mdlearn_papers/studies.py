"""What a reproduction consists of: studies that are run, and the tables and figures that are drawn from their records.

A study is a list of units. A unit is run by itself, in any process, and depends on nothing but its name, the data and
the settings; so runs can be interrupted, resumed and spread over processes, with the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdlearn_papers.documents import Report
    from mdlearn_papers.sources import Sets


@dataclass(frozen=True)
class Settings:
    """What all units of a run share.

    Attributes
    ----------
    quick : bool
        A smoke run: few sets, repeats and grid points.
    seed : int
        Of splits, folds and fits.
    """

    quick: bool = False
    seed: int = 0


@dataclass(frozen=True, order=True)
class Unit:
    """One piece of work. The order is that of a run: all sets once, then all sets again.

    Attributes
    ----------
    repeat : int
        Number of the split, from 0.
    data : str
        Name of the data set, in `mdlearn_papers.catalogue` or of generated data.
    part : str
        A method, or whatever else a study divides its work into.
    """

    repeat: int
    data: str
    part: str


@dataclass(frozen=True)
class Record:
    """What one method did on one split.

    Attributes
    ----------
    data, method : str
    repeat : int
    values : dict of str to float or list of float
        "accuracy" in [0, 1], "auc", "f1_macro", "f1_micro", or what else a study measures.
    chosen : dict
        Hyper-parameters chosen by cross-validation.
    fits, converged : int
        Number of fits, those of the cross-validation included, and how many of them are certified to their tolerance.
    gap : float
        The largest certified gap of the fits; 0 where there is none.
    seconds : float
        For selection, training and testing.
    note : str
        Why there are no values, or what is to be known of them.
    """

    data: str
    method: str
    repeat: int
    values: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, Any] = field(default_factory=dict)
    fits: int = 0
    converged: int = 0
    gap: float = 0.0
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Study:
    """Work that one or several tables and figures are made from.

    Attributes
    ----------
    name : str
        Also the name of the folder with its records.
    units : callable
        (Sets, Settings) -> list of Unit; sets that are missing have none.
    run : callable
        (Unit, Sets, Settings) -> list of Record; a function of a module, for other processes.
    version : int
        Raised when records of earlier versions no longer count.
    """

    name: str
    units: Callable[[Sets, Settings], list[Unit]]
    run: Callable[[Unit, Sets, Settings], list[Record]]
    version: int = 1


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper.

    Attributes
    ----------
    name : str
        As on the command line.
    title : str
        What the paper calls it, and which paper.
    study : Study
    report : callable
        (list of Record, Sets, Settings) -> Report.
    """

    name: str
    title: str
    study: Study
    report: Callable[[Sequence[Record], Sets, Settings], Report]
