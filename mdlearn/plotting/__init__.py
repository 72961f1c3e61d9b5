"""Plots of margins, probabilities, progress, boundaries and paths. Need matplotlib, imported at the first call."""

from mdlearn.plotting.boundary import decision_boundary
from mdlearn.plotting.distributions import cumulative_margins, cumulative_probabilities
from mdlearn.plotting.paths import path
from mdlearn.plotting.progress import gap_history

__all__ = ["cumulative_margins", "cumulative_probabilities", "decision_boundary", "gap_history", "path"]
