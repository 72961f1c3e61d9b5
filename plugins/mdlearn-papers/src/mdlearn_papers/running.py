"""Runs the units of a study that have no records yet, in one process or several."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from functools import lru_cache

from mdlearn.extend import ProgressBar, worker_pool
from mdlearn_papers.index import EXPERIMENTS
from mdlearn_papers.sources import Sets
from mdlearn_papers.store import Store
from mdlearn_papers.studies import Record, Settings, Unit


def run(name: str, store: Store, sets: Sets, settings: Settings, jobs: int) -> None:
    """Fill a store with the records of an experiment's study.

    Parameters
    ----------
    name : str
        Of the experiment.
    store : Store
    sets : Sets
    settings : Settings
    jobs : int
        Processes.
    """
    study = EXPERIMENTS[name].study
    units = [unit for unit in sorted(study.units(sets, settings)) if not store.done(unit)]
    folder = None if sets.folder is None else str(sets.folder)
    with (
        ProgressBar(1, study.name, len(units), "unit") as bar,
        closing(_results(name, units, folder, settings, jobs)) as results,
    ):
        for unit, records in results:
            store.add(unit, records)
            bar.advance(note=f"{unit.data} {unit.part} {unit.repeat + 1}")


def _results(
    name: str, units: Sequence[Unit], folder: str | None, settings: Settings, jobs: int
) -> Generator[tuple[Unit, list[Record]], None, None]:
    """Units with their records, as they are done."""
    work = [(name, unit, folder, settings) for unit in units]
    if jobs == 1 or len(work) < 2:
        yield from map(_done, work)
        return
    with worker_pool(jobs) as pool:
        yield from pool.imap_unordered(_done, work)


def _done(work: tuple[str, Unit, str | None, Settings]) -> tuple[Unit, list[Record]]:
    """Run one unit; what is wrong with it is noted, and the others go on."""
    name, unit, folder, settings = work
    try:
        return unit, EXPERIMENTS[name].study.run(unit, _sets(folder), settings)
    except (ArithmeticError, MemoryError, ValueError) as error:
        return unit, [Record(unit.data, unit.part, unit.repeat, note=" ".join(str(error).split()))]


@lru_cache(maxsize=1)
def _sets(folder: str | None) -> Sets:
    """A process reads every data set once."""
    return Sets(folder)
