"""Tables 1 and 2: accuracy and seconds on Raetsch's two-class sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mdlearn import selection
from mdlearn_papers import printed
from mdlearn_papers.comparing import ABSENT, Comparison, errors_away, remarks, scores
from mdlearn_papers.documents import Block, Heading, Report, Table
from mdlearn_papers.printed import Figures
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Experiment, Record, Settings
from mdlearn_papers.surveys import choices
from mdlearn_papers.uldm.benchmark import (
    ASIDE,
    NAMES,
    REDRAWN,
    REDRAWN_SET,
    SIZES,
    STUDY,
    SURVEYED,
    lines,
)
from mdlearn_papers.uldm.machines import C_SVM, C_ULDM, GAMMAS, MACHINES, PAPERS_OWN

ABBREVIATED = {"B. cancer": "Breast cancer"}
"""Names of table 2, and of table 1."""
ASIDE_TEXT = (
    "Beside the paper's protocol, on the first ten splits, with the LS SVM, which is the quickest: the same with every "
    "column scaled to [0, 1] (the paper does not say how inputs are scaled; here they are as the sets have them), and "
    "with the folds that mdlearn draws itself, which keep equal rows in one fold. Flare-solar and titanic have few "
    "distinct rows, most of them with both labels."
)


def told(values: Sequence[float]) -> str:
    """Values of a grid."""
    return ", ".join(f"{value:g}" for value in values)


def protocol(records: Sequence[Record]) -> list[Block]:
    """What is done, and how much of it."""
    done = {data: 1 + max(one.repeat for one in records if one.data == data) for data in {r.data for r in records}}
    n = ", ".join(f"{label} {done[data]}/{SIZES[label].splits}" for label, data in NAMES.items() if data in done)
    return [
        f"Splits so far, of those in the paper: {n}. A few splits say little of a spread, and then differences in "
        "standard errors mean nothing: accuracies of splits differ by 2 to 5 points on the small sets.",
        "Kernel exp(-gamma |x - z|^2 / d) for d inputs. Gamma and C are chosen together by 5-fold cross-validation "
        f"on the training part: gamma from {told(GAMMAS)}; C of the SVMs from {told(C_SVM)}; C of the ULDM from "
        f"{told(C_ULDM)}. All training rows are the basis of the ULDM. SVMs have a free bias. Folds are stratified, "
        "drawn at random and the same for all machines; of points that do equally well the smallest C is taken, then "
        "the smallest gamma.",
        'Eq. (31) multiplies C of the ULDM by the largest K_ii. "ULDM" takes K to be the matrix of eq. (27), the '
        'covariance of the signed basis columns; "ULDM, unscaled C" takes K_ii = k(x_i, x_i), which is 1 for this '
        "kernel.",
    ]


def compared(sets: Sets) -> Comparison:
    """Table 1 beside ours."""
    theirs = printed.means("uldm_table1_rbf", 100)
    figures: dict[tuple[str, str], Figures] = {}
    for label in NAMES:
        for method, own in PAPERS_OWN.items():
            figures[label, method] = replace(theirs[label, own], n=SIZES[label].splits)
        for method in ("LS SVM", "L1 SVM"):
            told = outcome(figures[label, method], figures[label, "ULDM"])
            figures[label, method] = replace(figures[label, method], versus=told)
    return Comparison(lines(sets), list(MACHINES), figures, "ULDM", selection.welch_test, unit=100.0)


def outcome(ours: Figures, reference: Figures) -> str:
    """Welch's test at 95 % of printed figures."""
    from scipy.stats import ttest_ind_from_stats

    p = ttest_ind_from_stats(
        ours.mean, ours.std, ours.n, reference.mean, reference.std, reference.n, equal_var=False
    ).pvalue
    if p >= 0.05:
        return "tie"
    return "better" if ours.mean > reference.mean else "worse"


def table1(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """Accuracy."""
    main = [record for record in records if record.method in MACHINES]
    comparison = compared(sets)
    blocks: list[Block] = [
        *protocol(main),
        *comparison.blocks(main, sets),
        "The paper's own tests say that the ULDM is better / not different / worse than the LS SVM on 0/13/0 sets, and "
        "than the L1 SVM on 1/11/1; the table above has them from the other side, out of the printed means and "
        "standard deviations.",
        Heading("Scaling of inputs, and folds"),
        ASIDE_TEXT,
        *aside(comparison, records),
        *redrawn(records),
        *surveys(comparison, records),
    ]
    return Report("Accuracy on two-class sets, RBF kernel: table 1 of Abe 2017", blocks)


def aside(comparison: Comparison, records: Sequence[Record]) -> list[Block]:
    """The experiments beside the table, on the splits that all of them have, and what they change."""
    methods = ("LS SVM", *ASIDE)
    values: dict[tuple[str, int], dict[str, float]] = {}
    for record in records:
        if record.method in methods and record.values:
            values.setdefault((record.data, record.repeat), {})[record.method] = record.values["accuracy"]
    found: dict[tuple[str, str], list[float]] = {}
    for (data, _), by_method in sorted(values.items()):
        if len(by_method) == len(methods):
            for method in methods:
                found.setdefault((data, method), []).append(by_method[method])
    arrays = {key: np.array(one) for key, one in found.items()}
    figures = {(label, m): comparison.printed[label, "LS SVM"] for label in NAMES for m in methods}
    changes = [change(arrays, method) for method in ASIDE]
    return [replace(comparison, methods=methods, printed=figures).table(arrays), *filter(None, changes)]


def redrawn(records: Sequence[Record]) -> list[Block]:
    """What random splits of the same sizes say of the splits that came with a set."""
    data, figures = NAMES[REDRAWN_SET], printed.means("uldm_table1_rbf", 100)[REDRAWN_SET, "ULDM"]
    found = scores([record for record in records if record.data == data], "accuracy")
    given, drawn = found.get((data, "ULDM")), found.get((data, REDRAWN))
    if given is None or drawn is None:
        return []
    ours, other = 100.0 * given, 100.0 * drawn
    if min(ours.shape[0], other.shape[0]) < 2:
        return []
    p = selection.welch_test(ours, other).pvalue
    away = errors_away(other, figures)
    return [
        Heading("Splits that came with the data, and others"),
        f"{REDRAWN_SET}, ULDM: {ours.mean():.2f} ± {ours.std(ddof=1):.2f} on the first {ours.shape[0]} of the original "
        f"splits, {other.mean():.2f} ± {other.std(ddof=1):.2f} on {other.shape[0]} random splits of the same sizes "
        f"(Welch's test of the two: p = {p:.2f}), printed {figures.mean:.2f} ± {figures.std:.2f} on 100. The random "
        f"splits are {away:+.1f} standard errors from the printed figure.",
    ]


def surveys(comparison: Comparison, records: Sequence[Record]) -> list[Block]:
    """How far the choice of parameters goes on the set that is furthest from the printed figure."""
    table = choices(records, comparison.printed, {data: label for label, data in NAMES.items()}, 100.0)
    if table is None:
        return []
    return [
        Heading("What the choice of parameters changes"),
        f"{SURVEYED} has 200 training rows, of which about 70 % are of one class: most points of the grids are within "
        "a few points of the majority answer, and the best score on the folds is chosen among 88 of them. The table "
        "has what other ways of choosing give on the same splits.",
        table,
    ]


def change(found: Mapping[tuple[str, str], np.ndarray], method: str) -> str:
    """Where an experiment changes the LS SVM most, and how much on average."""
    apart = {
        label: 100.0 * float(found[data, method].mean() - found[data, "LS SVM"].mean())
        for label, data in NAMES.items()
        if (data, method) in found
    }
    if not apart:
        return ""
    most = max(apart, key=lambda label: abs(apart[label]))
    average = float(np.mean(list(apart.values())))
    return (
        f"{method}: {average:+.2f} points on average over {len(apart)} sets, most on {most} ({apart[most]:+.2f}), "
        "against the LS SVM of the protocol."
    )


def table2(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """Seconds."""
    main = [record for record in records if record.method in MACHINES and record.values]
    theirs = {
        (ABBREVIATED.get(row["dataset"], row["dataset"]), row["method"]): float(row["seconds"])
        for row in printed.table("uldm_table2_seconds")
    }
    blocks: list[Block] = [
        *protocol(main),
        "Seconds are for one split: cross-validation over the whole grid, training and testing, one thread; means over "
        'the splits. The paper does not say what its seconds are of; as they include "model selection by fivefold '
        'cross-validation, training and testing", they are read as those of one split (3.4 GHz, 2016).',
        seconds_table(NAMES, main, theirs),
        slowest(main, theirs),
        *remarks(lines(sets), sets),
    ]
    return Report("Seconds on two-class sets: table 2 of Abe 2017", blocks)


def means_of(records: Sequence[Record]) -> dict[tuple[str, str], float]:
    """Mean seconds by (data, method)."""
    keys = dict.fromkeys((record.data, record.method) for record in records)
    return {
        key: float(np.mean([record.seconds for record in records if (record.data, record.method) == key]))
        for key in keys
    }


def seconds_table(
    names: Mapping[str, str], records: Sequence[Record], theirs: Mapping[tuple[str, str], float]
) -> Table:
    """Ours, printed, and how many times as fast."""
    ours, rows = means_of(records), []
    for label, data in names.items():
        cells = [label]
        for method in MACHINES:
            mine, printed_one = ours.get((data, method)), theirs.get((label, PAPERS_OWN[method]))
            cells += [
                ABSENT if mine is None else f"{mine:.2f}",
                ABSENT if printed_one is None else f"{printed_one:.2f}",
                ABSENT if mine is None or printed_one is None else f"{printed_one / mine:.2g}",
            ]
        rows.append(cells)
    header = ["data", *(f"{method}{what}" for method in MACHINES for what in (" s", " printed s", " ratio"))]
    return Table(header, rows, "ratio: printed seconds over ours.")


def slowest(records: Sequence[Record], theirs: Mapping[tuple[str, str], float]) -> str:
    """What the longest job of the paper takes here."""
    (label, method), printed_one = max(theirs.items(), key=lambda item: item[1])
    mine = means_of(records).get((NAMES[label], method))
    if mine is None:
        return f"The longest job of the paper, {method} on {label} ({printed_one:.0f} s), has not been run yet."
    return (
        f"The longest job of the paper, {method} on {label}, took {printed_one:.0f} s; the same job takes {mine:.1f} s "
        "here. One eigendecomposition per kernel width and fold serves all values of C."
    )


EXPERIMENTS = (
    Experiment("uldm-table1", "Abe 2017, table 1: accuracy on two-class sets, RBF kernel", STUDY, table1),
    Experiment("uldm-table2", "Abe 2017, table 2: seconds for the same", STUDY, table2),
)
