"""Engines: each states the form it consumes and hands in points; none knows which objective it serves."""

import pluggy


@pluggy.HookimplMarker("mdlearn")
def mdlearn_solvers() -> list[type]:
    """List the built-in solvers of this folder, by the hook that plugins use, too."""
    from mdlearn.solvers.coordinate_descent.solver import CoordinateDescent
    from mdlearn.solvers.decomposition.solver import KernelDecomposition
    from mdlearn.solvers.fixed_point import SMW
    from mdlearn.solvers.hybrid.solver import Hybrid
    from mdlearn.solvers.interior_point.solver import Interior
    from mdlearn.solvers.linear_program import LinearProgram
    from mdlearn.solvers.newton.solver import Newton
    from mdlearn.solvers.newton_cg.solver import NewtonCG
    from mdlearn.solvers.proximal_gradient.solver import APG
    from mdlearn.solvers.proximal_multipliers import ProximalMultipliers
    from mdlearn.solvers.quadratic.solver import Direct
    from mdlearn.solvers.stochastic.solver import ASGD, SGD

    return [
        APG,
        ASGD,
        CoordinateDescent,
        KernelDecomposition,
        Direct,
        Hybrid,
        Interior,
        LinearProgram,
        Newton,
        NewtonCG,
        ProximalMultipliers,
        SGD,
        SMW,
    ]
