"""The Optimal margin Distribution Machine and its multi-class form, objectives for mdlearn."""

import mdlearn

from .ccp import CCP
from .mcodm import McODM
from .odm import ODM

requires_api = 1

__all__ = ["CCP", "ODM", "McODM"]


@mdlearn.hookimpl
def mdlearn_objectives():
    """The objectives of this package."""
    return [ODM, McODM]


@mdlearn.hookimpl
def mdlearn_solvers():
    """The engine that serves mcODM of three or more classes."""
    return [CCP]
