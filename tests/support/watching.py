"""Engines that tell what they hand in: a fit keeps the best of it, tests of published methods ask for each."""

from __future__ import annotations

from mdlearn.solvers.base import Report


def watched(engine):
    """A class of the same engine, and the list of all points that its fits hand in."""
    seen = []

    class Watched(engine):
        def iterate(self, *given):
            for report in super().iterate(*given):
                if isinstance(report, Report):
                    seen.append(report.point)
                yield report

    return Watched, seen
