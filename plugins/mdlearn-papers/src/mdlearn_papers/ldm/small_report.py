"""Reports of tables 2 and 3 of the LDM paper, from the records of their runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mdlearn import selection
from mdlearn_papers.comparing import Comparison, errors_away, scores
from mdlearn_papers.documents import Block, Heading, Report, Table
from mdlearn_papers.ldm import protocol
from mdlearn_papers.ldm.reasons import evidence
from mdlearn_papers.ldm.small import SMALL, lines
from mdlearn_papers.ldm.small_study import READINGS
from mdlearn_papers.printed import Figures, means
from mdlearn_papers.reasons import reasons
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Record, Settings

PROTOCOL = (
    "Columns are scaled to [0, 1] over the whole set; half of the rows, drawn at random, are for training, the others "
    "for testing; 30 repeats, 2 with --quick. No bias, as in the paper (KM-OMD has a threshold of its own). C is "
    "chosen from 10, 50, 100, and lambda1 and lambda2 each from 2^-8, 2^-7, ..., 2^-2, by 5-fold cross-validation on "
    "the training half, all combinations; of equal scores the smallest C, lambda2, lambda1 win. All methods have the "
    "same halves and folds. Differences are tested by a paired t-test at 95 %."
)
WIDTH = (
    "The RBF kernel's width is chosen from 2^-2, ..., 2^2 times the average distance of two training rows. The paper "
    "gives no formula of the kernel: here gamma = 1 / (2 width^2)."
)
BASELINES = (
    "MAMC has no parameters, and for MDO the paper names none: MDO runs with the defaults of mdlearn-baselines, which "
    "are a reading of what is written about it. The paper chooses a C for KM-OMD, which has none: its lam is chosen "
    "from 0.01, 0.1, 0.5, 0.9 instead, so KM-OMD's protocol cannot be followed as printed."
)
OWN_GRID = (
    '"LDM (scale-aware grid)" is not in the paper: the same C, lambda1 / (C m) in {ratios}, and lambda2 / lambda1 in '
    "0, 1/4, 1, where m is the number of training rows. The hinge is summed over rows and the variance averaged, so "
    "that weights have to be of the order of C m to act."
)
RATIOS = {"linear": "0, 2^-10, 2^-8, ..., 1", "rbf": "0, 2^-8, 2^-4, 1"}
COST = {
    "linear": "A full run takes about 30 CPU minutes, half of them for the 147 points of LDM's grid.",
    "rbf": "A full run takes about 60 CPU minutes, half of them for the 735 points of LDM's grid.",
}
LEFT_OUT = "MDO, MAMC, KM-OMD: what of them has no figures needs mdlearn-baselines, which is not installed."


def report(kernel: str, title: str, records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """The printed table with our figures, LDM against the SVM, and the readings of the protocol.

    Parameters
    ----------
    kernel : {"linear", "rbf"}
    title : str
    records : sequence of Record
    sets : Sets
    settings : Settings
    """
    printed = means("ldm_table2_linear" if kernel == "linear" else "ldm_table3_rbf", protocol.REPEATS)
    methods = [one for one in protocol.OBJECTIVES if kernel == "linear" or one != protocol.MDO]
    own = [one for one in records if one.method in methods]
    table = Comparison(lines(), methods, printed, protocol.SVM, selection.paired_test)
    blocks: list[Block] = [PROTOCOL]
    blocks += [WIDTH] if kernel == "rbf" else []
    blocks += [BASELINES, OWN_GRID.format(ratios=RATIOS[kernel]), COST[kernel]]
    if len(protocol.methods(kernel)) < len(methods):
        blocks.append(LEFT_OUT)
    blocks += table.blocks(own, sets)
    blocks += same_as_svm(records)
    blocks += other_readings(kernel, records, printed)
    blocks += reasons(table, records, evidence(kernel, scores(records, "accuracy")))
    return Report(title, blocks)


def same_as_svm(records: Sequence[Record]) -> list[Block]:
    """What the weights of the paper's grid change: labels of test rows, and LDM's outcome against the SVM."""
    at_ends = [one for one in records if "flips" in one.values]
    if not at_ends:
        return []
    rows = []
    for label in dict.fromkeys(one.data for one in sorted(at_ends, key=lambda one: list(SMALL).index(one.data))):
        mine = [one.values for one in at_ends if one.data == label]
        rows.append(
            [label, str(sum(one["tested"] for one in mine)), *map(str, np.sum([one["flips"] for one in mine], axis=0))]
        )
    total = np.sum([[int(cell) for cell in row[1:]] for row in rows], axis=0)
    rows.append(["all", *map(str, total)])
    header = ["data", "test rows of all splits", *(f"changed, C = {C:g}" for C in protocol.C)]
    caption = (
        "Test rows whose predicted label changes when lambda1 = lambda2 = 0, the SVM, becomes lambda1 = lambda2 = "
        "2^-2, the largest weights of the paper's grid. RBF: at the width that was chosen for LDM."
    )
    changed, of = int(total[1:].sum()), int(total[0]) * len(protocol.C)
    return [
        Heading("Is LDM on the paper's grid another classifier than the SVM?"),
        Table(header, rows, caption),
        f"So {changed} of {of} predictions change ({100.0 * changed / of:.3f} %). {verdict(records)}",
    ]


def verdict(records: Sequence[Record]) -> str:
    """How often LDM and the SVM score differently, and how they compare, on either grid."""
    found = scores(records, "accuracy")
    told = []
    for method, grid in ((protocol.LDM, "the paper's grid"), (protocol.SCALED, "the scale-aware grid")):
        pairs = [
            (found[label, method], found[label, protocol.SVM])
            for label in SMALL
            if (label, method) in found and (label, protocol.SVM) in found
        ]
        pairs = [(ours[:n], theirs[:n]) for ours, theirs in pairs if (n := min(len(ours), len(theirs))) > 1]
        if not pairs:
            continue
        same = sum(int((ours == theirs).sum()) for ours, theirs in pairs)
        splits = sum(len(ours) for ours, _ in pairs)
        gain = 100.0 * float(np.mean([(ours - theirs).mean() for ours, theirs in pairs]))
        tests = [selection.paired_test(ours, theirs) for ours, theirs in pairs]
        sure = [one for one in tests if one.pvalue < 0.05]
        wins = sum(one.difference > 0 for one in sure)
        counts = f"{wins}/{len(tests) - len(sure)}/{len(sure) - wins}"
        told.append(
            f"On {grid}, LDM has the SVM's test accuracy exactly in {same} of {splits} splits; it is better / not "
            f"different / worse on {counts} of {len(tests)} sets, and its mean accuracy is {gain:+.2f} per cent away."
        )
    return " ".join(told)


def other_readings(kernel: str, records: Sequence[Record], printed: Mapping[tuple[str, str], Figures]) -> list[Block]:
    """The SVM under other readings of the protocol, beside its printed figure."""
    found = scores(records, "accuracy")
    common = (protocol.SVM, *READINGS[kernel])
    rows, near = [], {name: [0, 0] for name in common}
    for label, one in SMALL.items():
        figures = printed[label, protocol.SVM]
        if not any((label, name) in found for name in READINGS[kernel]):
            continue
        for name in common:
            away = errors_away(found[label, name], figures) if (label, name) in found else math.nan
            near[name][0] += abs(away) <= 2
            near[name][1] += not math.isnan(away)
        extra = [
            f"{coding}: {_beside(found[label, f'SVM, {coding}'], figures)}"
            for coding in one.other
            if (label, f"SVM, {coding}") in found
        ]
        cells = [_beside(found.get((label, name)), figures) for name in common]
        rows.append([label, f"{figures.mean:.3f}", *cells, "; ".join(extra) or "-"])
    if not rows:
        return []
    names = ["as above", *(name.removeprefix("SVM, ") for name in READINGS[kernel])]
    caption = (
        "Mean accuracy of the SVM under other readings of the protocol, and in brackets its distance from the printed "
        'figure in standard errors. "C times rows": C m instead of C.'
    )
    counts = ", ".join(f"{name} {good} of {n}" for name, (good, n) in zip(names, near.values()))
    return [
        Heading("Other readings of the protocol"),
        Table(["data", "printed SVM", *names, "other columns"], rows, caption),
        f"Sets on which the SVM lies within two standard errors of the printed figure: {counts}.",
    ]


def _beside(values: np.ndarray | None, figures: Figures) -> str:
    if values is None:
        return "-"
    away = errors_away(values, figures)
    return f"{values.mean():.3f}" + ("" if math.isnan(away) else f" ({away:+.1f})")
