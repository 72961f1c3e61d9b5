"""Engines: each states the form it consumes and hands in points; none knows which objective it serves."""

from mdlearn.plugins.hookspecs import hookimpl


@hookimpl
def mdlearn_solvers() -> list[type]:
    """Built-in engines, by the same hook that plugins use."""
    from mdlearn.solvers.apg import APG
    from mdlearn.solvers.cd import CoordinateDescent
    from mdlearn.solvers.direct import Direct
    from mdlearn.solvers.interior import Interior
    from mdlearn.solvers.linprog import LinearProgram
    from mdlearn.solvers.newton import Newton
    from mdlearn.solvers.sgd import ASGD, SGD
    from mdlearn.solvers.smw import SMW

    return [APG, ASGD, CoordinateDescent, Direct, Interior, LinearProgram, Newton, SGD, SMW]
