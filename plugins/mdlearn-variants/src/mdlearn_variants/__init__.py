"""Later variants of the SVM and of margin-distribution machines, objectives for mdlearn."""

import mdlearn

from .cccp import CCCP
from .costs import CostLDM, FuzzySVM
from .msvmav import MSVMAv
from .multi_label import MultiLabelODM
from .one_class import OneClassLDM, OneClassSVM
from .ordinal import OrdinalLDM, OrdinalSVM
from .penalties import ElasticNetLDM, ElasticNetSVM, GroupLassoLDM, GroupLassoSVM
from .pinball import PinballLDM, PinballSVM
from .ramp import RampLDM, RampSVM
from .ranking import RankSVM
from .regression import HuberVariance, QuantileVariance, TubeVariance
from .semi_supervised import SemiODM
from .sparse_hinges import L1SVM, DoublyRegularizedSVM, FusedSVM, NonnegativeLDM

requires_api = 1

__all__ = [
    "CCCP",
    "L1SVM",
    "CostLDM",
    "DoublyRegularizedSVM",
    "ElasticNetLDM",
    "ElasticNetSVM",
    "FusedSVM",
    "FuzzySVM",
    "GroupLassoLDM",
    "GroupLassoSVM",
    "HuberVariance",
    "MSVMAv",
    "MultiLabelODM",
    "NonnegativeLDM",
    "OneClassLDM",
    "OneClassSVM",
    "OrdinalLDM",
    "OrdinalSVM",
    "PinballLDM",
    "PinballSVM",
    "QuantileVariance",
    "RampLDM",
    "RampSVM",
    "RankSVM",
    "SemiODM",
    "TubeVariance",
]


@mdlearn.hookimpl
def mdlearn_objectives():
    """Return the objectives of this package."""
    return [
        RampSVM,
        RampLDM,
        FuzzySVM,
        CostLDM,
        PinballSVM,
        PinballLDM,
        TubeVariance,
        QuantileVariance,
        HuberVariance,
        MSVMAv,
        ElasticNetSVM,
        ElasticNetLDM,
        GroupLassoSVM,
        GroupLassoLDM,
        OneClassSVM,
        OneClassLDM,
        OrdinalSVM,
        OrdinalLDM,
        RankSVM,
        L1SVM,
        DoublyRegularizedSVM,
        FusedSVM,
        NonnegativeLDM,
        SemiODM,
        MultiLabelODM,
    ]


@mdlearn.hookimpl
def mdlearn_solvers():
    """Return the engine of ramp losses and unknown labels."""
    return [CCCP]
