"""The multi-class form of the Optimal margin Distribution Machine, an objective for mdlearn."""

import mdlearn

from .ccp import CCP
from .mcodm import McODM

requires_api = 1

__all__ = ["CCP", "McODM"]


@mdlearn.hookimpl
def mdlearn_objectives():
    """The objective of this package."""
    return [McODM]


@mdlearn.hookimpl
def mdlearn_solvers():
    """The engine that serves mcODM of three or more classes."""
    return [CCP]
