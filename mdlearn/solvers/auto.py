"""Engines that go on where the one that ``solver="auto"`` chose ends without the gap asked for."""

from __future__ import annotations

from mdlearn.solvers.coordinate_descent.solver import CoordinateDescent
from mdlearn.solvers.interior_point.solver import Interior
from mdlearn.solvers.linear_program import LinearProgram
from mdlearn.solvers.newton.solver import Newton
from mdlearn.solvers.newton_cg.solver import NewtonCG
from mdlearn.solvers.proximal_gradient.solver import APG

RELIEF = (Newton(), CoordinateDescent(), Interior(), APG(), LinearProgram())
"""Engines that go on, in this order, where the one that was chosen ends without the gap asked for."""
FOLLOWERS = {"cd": Interior(), "decomposition": NewtonCG()}
"""Engine that goes on where another asks for it, also one that the user named: sweeps can crawl or go round in circles,
and working sets can be too small.
"""
