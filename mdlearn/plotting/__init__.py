"""Plots of margins, probabilities, progress, boundaries, paths and grids. Need matplotlib, imported at the first call.

`COLOURS` are the colours of all plots, chosen for the colour-blind (Okabe and Ito).
"""

from typing import TYPE_CHECKING

from mdlearn.lazy import lazy_names

if TYPE_CHECKING:
    from mdlearn.plotting.boundary import decision_boundary
    from mdlearn.plotting.distributions import cumulative_margins, cumulative_probabilities
    from mdlearn.plotting.grids import grid, path
    from mdlearn.plotting.progress import gap_history
    from mdlearn.plotting.style import COLOURS

_LAZY = {
    "mdlearn.plotting.boundary": ("decision_boundary",),
    "mdlearn.plotting.distributions": ("cumulative_margins", "cumulative_probabilities"),
    "mdlearn.plotting.grids": ("grid", "path"),
    "mdlearn.plotting.progress": ("gap_history",),
    "mdlearn.plotting.style": ("COLOURS",),
}

__all__ = [
    "COLOURS",
    "cumulative_margins",
    "cumulative_probabilities",
    "decision_boundary",
    "gap_history",
    "grid",
    "path",
]

if not TYPE_CHECKING:  # so that a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__, _LAZY)
