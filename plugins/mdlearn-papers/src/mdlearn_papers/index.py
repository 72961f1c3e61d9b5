"""All tables and figures, by the name that the command line takes."""

from __future__ import annotations

from mdlearn_papers import l3, ldm, lsvm, mdlm, uldm
from mdlearn_papers.studies import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one for paper in (ldm, uldm, lsvm, mdlm, l3) for one in paper.EXPERIMENTS
}
