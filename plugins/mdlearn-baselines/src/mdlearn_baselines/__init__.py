"""The other methods of the papers' tables, as objectives for mdlearn."""

import mdlearn
from mdlearn_baselines.csvm import CSVM, ClusterSVM
from mdlearn_baselines.descent import Sphere
from mdlearn_baselines.kmomd import KMOMD
from mdlearn_baselines.llsvm import LLSVM
from mdlearn_baselines.mamc import MAMC
from mdlearn_baselines.mdo import MDO
from mdlearn_baselines.ml3 import ML3
from mdlearn_baselines.path import Latent

requires_api = 1


@mdlearn.hookimpl
def mdlearn_objectives():
    """What this package offers."""
    return [MAMC, KMOMD, MDO, CSVM, ClusterSVM, LLSVM, ML3]


@mdlearn.hookimpl
def mdlearn_solvers():
    """Engines for problems that no other takes."""
    return [Sphere, Latent]
