"""Objectives: each is a point of the margin-distribution family, written as a form."""

from mdlearn.plugins.hookspecs import hookimpl


@hookimpl
def mdlearn_objectives() -> list[type]:
    """Built-in objectives, by the same hook that plugins use."""
    from mdlearn.objectives.ldm import LDM
    from mdlearn.objectives.leastsquares import LSLDM, LSSVM
    from mdlearn.objectives.lsvm import LSVM
    from mdlearn.objectives.svm import SVM

    return [LDM, SVM, LSSVM, LSLDM, LSVM]
