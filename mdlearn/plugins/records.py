"""Records of plugins: what became of each, for people and programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

STATES = ("error", "conflict", "disabled", "ok")
"""The worst one first: a distribution with several entries shows its worst."""


@dataclass(frozen=True)
class PluginRecord:
    """Record of a plugin: one entry point of an installed distribution.

    Attributes
    ----------
    distribution, version : str
        The distribution's exact name, and its version.
    entry : str
        Name of the entry point in the group "mdlearn".
    objectives, solvers, kernels, sources : tuple of str
        Names that this plugin brings and that can be used.
    state : {"ok", "error", "conflict", "disabled"}
        "error": something it offers was refused; "conflict": another plugin offers the same name; "disabled": switched
        off by MDLEARN_DISABLE_PLUGINS and not imported.
    error : str or None
        What is wrong; None for the states "ok" and "disabled".
    commands : tuple of str
        Names of subcommands, as for objectives.
    """

    distribution: str
    version: str
    entry: str
    objectives: tuple[str, ...] = ()
    solvers: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    state: str = "ok"
    error: str | None = None
    commands: tuple[str, ...] = ()

    def __str__(self) -> str:
        entry = f" (entry {self.entry})" if self.entry else ""
        return f"{self.distribution} {self.version}{entry}: {self.error or self.state}"


def plugin_records_as_lines(records: Iterable[PluginRecord]) -> list[str]:
    """Records of plugins as lines, one per distribution: name, version, what it provides, state and faults."""
    return [_record_line(list(group)) for _, group in groupby(records, key=lambda one: (one.distribution, one.version))]


def plugin_records_as_json(records: Iterable[PluginRecord]) -> str:
    """Records of plugins as JSON: a list with one object per entry point."""
    return json.dumps([dataclasses.asdict(record) for record in records], indent=2)


def _record_line(records: list[PluginRecord]) -> str:
    """Line on the records of one distribution of plugins: version, what it provides, state and faults."""
    kinds = ("objectives", "solvers", "kernels", "sources", "commands")
    names = {kind: [name for one in records for name in getattr(one, kind)] for kind in kinds}
    provides = [f"{kind} {', '.join(found)}" for kind, found in names.items() if found]
    state = min((one.state for one in records), key=STATES.index)
    several = len(records) > 1
    faults = [f"entry {one.entry}: {one.error}" if several else one.error for one in records if one.error]
    told = "; ".join([*(provides or ["nothing"]), ": ".join([state, "; ".join(faults)]) if faults else state])
    return f"{records[0].distribution} {records[0].version}: {told}"
