"""Table 3: accuracy and AUC on nine binary sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mdlearn import selection
from mdlearn_papers.comparing import Comparison, certificates, remarks, scores
from mdlearn_papers.documents import Block, Heading, Report
from mdlearn_papers.mdlm import ranges, readings
from mdlearn_papers.mdlm.protocol import (
    COSTS,
    FILES,
    LINES,
    METHODS,
    SQUARED,
    has,
    rows,
    split,
    told,
)
from mdlearn_papers.printed import Figures, table
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit
from mdlearn_papers.surveys import SUFFIX

SPLITS = 60
"""30 divisions, both ways round."""
QUICK = ("heart", "promoters")
MEASURES = {"accuracy": "ACC", "auc": "AUC"}


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """Every method on every half of every set that is there; readings on the first halves."""
    names = [name for name in FILES.values() if has(sets, name) and (name in QUICK or not settings.quick)]
    splits, few = (2, 1) if settings.quick else (SPLITS, readings.FEW)
    found = [Unit(r, name, part) for r in range(splits) for name in names for part in METHODS]
    return (
        found + readings.units(sets, names, few) + ranges.units(sets, names, few if settings.quick else ranges.HALVES)
    )


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """One method of the table, or the methods of a reading, on one half."""
    if unit.part.endswith(SUFFIX):
        return ranges.run(unit, sets, settings)
    if unit.part not in METHODS:
        return readings.run(unit, sets, settings)
    parts = split(*rows(sets, unit.data), settings.seed, unit.data, unit.repeat)
    place = unit.data, unit.part, unit.repeat, parts
    return [METHODS[unit.part].judge(*place, settings.quick, settings.seed, bias="none")]


def printed(metric: str) -> dict[tuple[str, str], Figures]:
    """Figures of the table by set and method; `metric` is "ACC" or "AUC"."""
    return {
        (row["dataset"], row["method"]): Figures(float(row["mean"]), float(row["std"]), SPLITS)
        for row in table("mdlm_table3_binary")
        if row["metric"] == metric
    }


def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """Both halves of the table, and the readings."""
    mine = [record for record in records if record.method in METHODS]
    theirs = {key: (metric, printed(metric)) for key, metric in MEASURES.items()}
    blocks: list[Block] = [*PROTOCOL]
    for key, (metric, figures) in theirs.items():
        one, found = Comparison(LINES, tuple(METHODS), figures, "MDLM", selection.paired_test, key), scores(mine, key)
        blocks += [Heading(metric), one.table(found), one.outcomes(found), one.standings(found), one.outside(found)]
    away = ranges.explained(records, theirs)
    if away is not None:
        blocks += [Heading("Figures beyond two standard errors"), away]
    blocks += [ridged(records), Heading("Other readings of scaling, bias, coding and kernel")]
    blocks += [readings.compared(records, key, *figures) for key, figures in theirs.items()]
    blocks += [readings.distances(records, theirs), readings.agreement(mine, theirs), *READING, *remarks(LINES, sets)]
    blocks += [Heading("Certificates"), certificates(mine)]
    return Report(EXPERIMENT.title, [block for block in blocks if block])


def ridged(records: Sequence[Record]) -> str:
    """Where MDLM had no optimum without a squared norm."""
    labels = {line.data: line.label for line in LINES}
    found = Counter((labels[one.data], one.method) for one in records if one.values and one.note)
    told_ = ", ".join(f"{label} ({method}, {n})" for (label, method), n in found.items())
    return f"Halves on which MDLM's objective had no optimum without a squared norm: {told_ or 'none'}."


PROTOCOL = (
    "Thirty times twofold cross-validation: every class is divided at random into two halves, each of which is the "
    f"training part once; mean and standard deviation are over these {SPLITS} halves. Parameters are chosen for "
    "accuracy by 5-fold cross-validation in the training part; how the paper chose them is not stated in full.",
    "No bias. Columns are as in the files, without scaling: the paper asks for features that are normalised but does "
    "not say how; other readings are below.",
    "Grids: lambda1 and lambda2 of MDLM and the alpha of MDLM and MLR are thinned to 2^-3, 2^-1, 2, 2^3 and 1, 5, 10 "
    "of the paper's 2^-3, 2^-2, ..., 2^3 and 1, 2, ..., 10, because the full grid takes ten times as long; on the "
    "first halves the full grid was run too (below). The other grids are not stated: lam of L2LR and MLR is from "
    f"{told(SQUARED)}; C of the support vector machine from {told(COSTS)}; LDM has C from 1, 10, 100, lambda1 and "
    "lambda2 from 2^-3 and 2^3. All machines are linear.",
    "The paper's objective for MDLM is unbounded below for every lambda2 > 0 where some w gives all training rows the "
    "same margin; promoter, with 57 columns and 53 training rows, is such a set. The library refuses to fit it. There "
    "a squared norm with weight 0.01, 0.1 or 1, chosen with the others, is added (alpha = 5).",
    "The paper names no test; methods are compared with MDLM by the paired t-test at 95 %, which takes the halves for "
    "independent. A full run takes about 25 minutes on one core.",
)

READING = (
    "diabetes tells the readings apart: with a bias, or on columns whose zero lies inside the data, every linear "
    "method reaches an AUC above 0.82, where the paper prints 0.63 to 0.66; without a bias on the file's own units "
    "L2LR, MLR and MDLM come within about 0.02 of its accuracy and AUC. So the paper's figures are those of "
    "hyperplanes through the origin, and where a bias matters all methods of the table would gain more by it than "
    "they differ from each other.",
    "In that reading L2LR, MLR and MDLM agree with the paper on the other sets too (last table), with integer codes "
    "for promoter: one-hot columns give more than the paper prints. ionosphere is the exception: no linear reading "
    "gives the printed AUC of MLR, LDM and MDLM, all of 0.94 and more; an RBF kernel gives those of all five methods.",
    "The printed figures of the support vector machine and of LDM are below ours on several sets, although every fit "
    "here is certified to be the optimum of the same objective. No optimum of any reading has those of LDM on "
    "australian (0.797 and 0.826), nor, without an RBF kernel, its accuracy on heart (0.787): coordinate "
    "descent that is stopped after 3 or 10 sweeps over unscaled columns has such figures. The lead that MDLM has over "
    "these two in the paper is not seen here.",
)

STUDY = Study("mdlm-binary", units, run)
EXPERIMENT = Experiment("mdlm-table3", "MDLM paper, table 3: accuracy and AUC on nine binary sets", STUDY, report)
