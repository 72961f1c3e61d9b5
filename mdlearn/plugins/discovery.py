"""Discovery of installed plugins: entry points of the group "mdlearn". Nothing is imported here."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

GROUP = "mdlearn"
DISABLE = "MDLEARN_DISABLE_PLUGINS"
"""Environment variable: names of distributions, with commas between them, or ``*`` for all."""


@dataclass(frozen=True)
class PluginEntryPoint:
    """Entry point of an installed distribution, as the discovery of plugins finds it."""

    distribution: str  # name of the distribution, as its metadata spell it
    version: str  # version of the distribution
    entry: str  # name of the entry point; empty when the list of entry points cannot be read
    load: Callable[[], Any]  # load() imports and returns what the entry point names

    @property
    def title(self) -> str:
        """The name under which pluggy knows the plugin."""
        return f"{self.distribution}:{self.entry}"

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}" + (f" (entry {self.entry})" if self.entry else "")


def plugin_entry_points() -> list[PluginEntryPoint]:
    """Discover all entry points of plugins, sorted by distribution and entry, whatever the order on disk."""
    found = [source for distribution in _plugin_distributions() for source in _entry_points(distribution)]
    return sorted(found, key=lambda source: (normalized_distribution_name(source.distribution), source.entry))


def disabled_distributions() -> Callable[[str], bool]:
    """Function of a distribution's name: whether the environment disables the discovery of its plugins."""
    names = {normalized_distribution_name(name.strip()) for name in os.environ.get(DISABLE, "").split(",")}
    return lambda distribution: "*" in names or normalized_distribution_name(distribution) in names


def normalized_distribution_name(name: str) -> str:
    """Name of a distribution, normalised for the discovery of plugins as package indexes do (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _plugin_distributions() -> Iterator[importlib.metadata.Distribution]:
    """Distributions that mention the group of plugins, each discovered once.

    One that lies on the path twice (installed and in a source folder) counts where Python looks first.
    """
    seen = set()
    for candidate in importlib.metadata.distributions():
        # The name is in a larger file, so it is read only where it is needed.
        name = _discovered_name_and_version(candidate)[0] if GROUP in _discovered_entry_points_text(candidate) else ""
        if not name or normalized_distribution_name(name) in seen:
            continue
        seen.add(normalized_distribution_name(name))
        try:
            first = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:  # its folder has another name than its metadata
            first = candidate
        yield first if _discovered_name_and_version(first)[0] else candidate


def _discovered_entry_points_text(distribution: importlib.metadata.Distribution) -> str:
    """Text of the entry points of a distribution, for the discovery of plugins; empty where it is unreadable."""
    try:
        return distribution.read_text("entry_points.txt") or ""
    except Exception:
        return ""  # of no use to anybody


def _discovered_name_and_version(distribution: importlib.metadata.Distribution) -> tuple[str, str]:
    """Name and version of a distribution in the discovery of plugins; empty for an unfinished installation."""
    try:
        metadata = distribution.metadata
        return metadata["Name"] or "", metadata["Version"] if "Version" in metadata else "unknown"
    except Exception:
        return "", ""


def _entry_points(distribution: importlib.metadata.Distribution) -> Iterator[PluginEntryPoint]:
    """Discover the entry points of plugins in a distribution; faulty ones raise their error when loaded."""
    name, version = _discovered_name_and_version(distribution)
    try:
        points = [point for point in distribution.entry_points if point.group == GROUP]
    except Exception as error:
        # Whether the faulty lines are ours cannot be known. Only a list with a section of ours is worth a word.
        if f"[{GROUP}]" in _discovered_entry_points_text(distribution):
            wrong = ValueError(f"entry_points.txt cannot be read ({error})")
            yield PluginEntryPoint(name, version, "", _faulty_discovery_loader(wrong))
        return
    for point in points:
        right = point.pattern.match(point.value)
        wrong = ValueError(f"{point.value!r} does not name a module")
        yield PluginEntryPoint(name, version, point.name, point.load if right else _faulty_discovery_loader(wrong))


def _faulty_discovery_loader(error: Exception) -> Callable[[], Any]:
    """Loader of a faulty entry point in the discovery of plugins, which raises this error."""

    def load() -> Any:
        raise error

    return load
