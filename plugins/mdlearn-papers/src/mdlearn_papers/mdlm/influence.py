"""Figure 4: accuracy of MDLM against alpha, lambda1 and lambda2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.extend import MARKERS, curve_style
from mdlearn_papers.comparing import certificates, remarks
from mdlearn_papers.documents import Block, Picture, Report, Table
from mdlearn_papers.judging import judged
from mdlearn_papers.mdlm.binary import QUICK
from mdlearn_papers.mdlm.protocol import FILES, LINES, UNSOLVABLE, has, rows, split
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit

POWERS = tuple(2.0**k for k in range(-3, 4))
VALUES = {"alpha": tuple(map(float, range(1, 11))), "lambda1": POWERS, "lambda2": POWERS}
FIXED = {"alpha": 5.0, "lambda1": 1.0, "lambda2": 1.0}
"""What the others are held at."""
RIDGE = 0.1
"""On sets where the objective needs a squared norm."""
SPLITS = 20


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """Every parameter on the first halves of every set that is there."""
    names = [name for name in FILES.values() if has(sets, name) and (name in QUICK or not settings.quick)]
    return [Unit(r, name, what) for r in range(2 if settings.quick else SPLITS) for name in names for what in VALUES]


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """Accuracies along one parameter, as one record."""
    parts = split(*rows(sets, unit.data), settings.seed, unit.data, unit.repeat)
    ridge = RIDGE if unit.data in UNSOLVABLE else 0.0
    found = [
        judged(
            unit.data,
            unit.part,
            unit.repeat,
            parts,
            "mdlm",
            None,
            seed=settings.seed,
            bias="none",
            **{**FIXED, unit.part: value, "ridge": ridge},
        )[0]
        for value in VALUES[unit.part]
    ]
    return [
        replace(
            found[0],
            values={"accuracies": [one.values["accuracy"] for one in found]},
            fits=len(found),
            converged=sum(one.converged for one in found),
            gap=max(one.gap for one in found),
            seconds=sum(one.seconds for one in found),
        )
    ]


def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """A panel for every parameter, and how much each one changes."""
    means = averages(records)
    labels = {line.data: line.label for line in LINES if line.data}

    def draw(figure: Any) -> None:
        axes = figure.subplots(1, len(VALUES), sharey=True)
        for ax, (what, values) in zip(axes, VALUES.items()):
            for i, (name, label) in enumerate(labels.items()):
                if (name, what) in means:
                    ax.plot(values, means[name, what], marker=MARKERS[i], markersize=4, label=label, **curve_style(i))
            if what != "alpha":
                ax.set_xscale("log", base=2)
            ax.set_xlabel(what)
        axes[0].set_ylabel("accuracy")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

    lines = []
    for name, label in labels.items():
        if all((name, what) in means for what in VALUES):
            cells = [f"{np.ptp(means[name, what]):.3f} ({best(means[name, what], what)})" for what in VALUES]
            lines.append([label, *cells])
    caption = "Largest less least mean accuracy along each parameter, and in brackets the value with the largest."
    blocks: list[Block] = [
        f"Mean accuracy of MDLM over the first {SPLITS} halves of table 3 (no bias, columns as in the files), along "
        "one parameter with the others at alpha = 5, lambda1 = 1 and lambda2 = 1, which the paper does not state. On "
        f"promoter, where the objective has no optimum without it, a squared norm has weight {RIDGE:g}.",
        Picture("mdlm-fig4", draw, "Accuracy against alpha, lambda1 and lambda2.", (9.0, 4.6)),
        Table(["data", *VALUES], lines, caption),
    ]
    return Report(EXPERIMENT.title, [*blocks, flatness(means), *remarks(LINES, sets), certificates(records)])


def flatness(means: dict[tuple[str, str], np.ndarray]) -> str:
    """The largest change along each parameter, with and without the sets that have a squared norm."""
    told = []
    for what in VALUES:
        spans = {name: float(np.ptp(along)) for (name, of), along in means.items() if of == what}
        plain = [span for name, span in spans.items() if name not in UNSOLVABLE]
        ridged = [span for name, span in spans.items() if name in UNSOLVABLE]
        parts = [f"{max(plain):.3f}"] if plain else []
        parts += [f"{max(ridged):.3f} on promoter"] if ridged else []
        told.append(f"{what} {' and '.join(parts)}")
    return (
        f"The accuracy changes along each parameter by at most: {'; '.join(told)}. Where the objective has no squared "
        "norm the parameters hardly matter on these sets; with one, lambda1 weighs against it."
    )


def averages(records: Sequence[Record]) -> dict[tuple[str, str], np.ndarray]:
    """Mean accuracies along each parameter, by set and parameter."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for record in records:
        if record.values:
            found.setdefault((record.data, record.method), []).append(record.values["accuracies"])
    return {place: np.mean(values, axis=0) for place, values in found.items()}


def best(accuracies: np.ndarray, what: str) -> str:
    """The value of a parameter with the largest accuracy."""
    return f"{VALUES[what][int(accuracies.argmax())]:g}"


STUDY = Study("mdlm-influence", units, run)
EXPERIMENT = Experiment("mdlm-fig4", "MDLM paper, figure 4: influence of alpha, lambda1 and lambda2", STUDY, report)
