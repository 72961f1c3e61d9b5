"""Synthetic data of the papers: clusters, boards, spirals, Gaussians, and noise for data that you have.

Every generator returns ``X, y`` with labels -1 and +1 in float64. ``random_state`` is None (which means 0), an integer
or a numpy Generator; the same integer gives the same data. Each function draws from a stream of its own, so that,
for one integer, the noise of `add_noise` is independent of the data of `two_gaussians`.
"""

from mdlearn.datasets.clusters import NDC, ndc, two_gaussians
from mdlearn.datasets.noise import add_noise
from mdlearn.datasets.shapes import checkerboard, swiss_roll, xor

__all__ = ["NDC", "add_noise", "checkerboard", "ndc", "swiss_roll", "two_gaussians", "xor"]
