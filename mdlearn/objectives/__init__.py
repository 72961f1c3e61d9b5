"""Objectives: each is a point of the margin-distribution family, written as a form."""

import pluggy


@pluggy.HookimplMarker("mdlearn")
def mdlearn_objectives() -> list[type]:
    """List the built-in objectives of this folder, by the hook that plugins use, too."""
    from mdlearn.objectives.l3svm import L3SVM
    from mdlearn.objectives.ldm import LDM
    from mdlearn.objectives.leastsquares import LSLDM, LSSVM
    from mdlearn.objectives.logistic import L2LR, MLR
    from mdlearn.objectives.lsvm import LSVM
    from mdlearn.objectives.mdlm import MDLM
    from mdlearn.objectives.mmlr import MMLR
    from mdlearn.objectives.odm import ODM
    from mdlearn.objectives.rlp import RLP
    from mdlearn.objectives.svm import SVM, SVR
    from mdlearn.objectives.uldm import ULDM
    from mdlearn.objectives.ww import WestonWatkins

    return [LDM, ODM, SVM, LSSVM, LSLDM, LSVM, ULDM, L2LR, MLR, MDLM, MMLR, WestonWatkins, RLP, L3SVM, SVR]
