"""Comparison tables: the results of a comparison as text, CSV or JSON, with average ranks."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdlearn.selection.metrics import average_ranks

ABSENT = "-"
WIDTH = 120
"""Characters of a line of text; the table itself is as wide as it needs to be."""
KINDS = {True: "two classes", False: "more classes"}


@dataclass(frozen=True)
class ComparisonSettings:
    """Settings that all fits of a comparison share, and that its tables state.

    `repeats`, `seed`: number of splits, and the seed they are drawn with.
    """

    repeats: int
    seed: int
    time_limit: float  # seconds per fit
    kernel: str
    max_rows: int  # rows of a set that are used
    n_threads: int | None  # threads of a fit


@dataclass(frozen=True)
class ComparisonCell:
    """Cell of a comparison table: result of one objective on one data set.

    `engine`, `multiclass`: of the last fit; empty without one; `accuracy`, `second`: one per fit that gave a model:
    share of right labels in the test half, and the area under the ROC curve for two classes, macro F1 for more; `gap`,
    `seconds`: the largest certified gap, and the sum of the times to fit.
    """

    data: str
    objective: str
    # rows, columns, classes of the set as it is in the file; empty when it could not be read
    shape: tuple[int, ...] = ()
    engine: str = ""
    multiclass: str = ""
    accuracy: tuple[float, ...] = ()
    second: tuple[float, ...] = ()
    gap: float = np.nan
    seconds: float = np.nan
    notes: tuple[str, ...] = ()  # why values are missing or to be taken with care


@dataclass
class Comparison:
    """Results of a comparison so far, of which tables are made."""

    settings: ComparisonSettings
    cells: list[ComparisonCell] = field(default_factory=list)

    def ranks(self, binary: bool) -> dict[str, tuple[float, int]]:
        """Average rank by mean accuracy of every objective, and number of sets, over sets of two classes or of more.

        1 is the best. An objective without a value on a set comes last there. Sets that no objective has a value on,
        or that some objective was not tried on, do not count.
        """
        names = list(dict.fromkeys(cell.objective for cell in self.cells))
        by_set: dict[str, dict[str, float]] = {}
        for cell in self.cells:
            if cell.shape and (cell.shape[2] <= 2) == binary:
                by_set.setdefault(cell.data, {})[cell.objective] = _comparison_mean(cell.accuracy)
        values = np.array([[row[name] for name in names] for row in by_set.values() if len(row) == len(names)])
        values = values[~np.isnan(values).all(axis=1)] if values.size else values
        if not values.size:
            return {}
        ranks = np.mean([average_ranks(row) for row in values], axis=0)
        return {name: (float(rank), values.shape[0]) for name, rank in zip(names, ranks)}

    def title(self) -> str:
        """One paragraph: what was done."""
        s = self.settings
        return (
            f"{s.repeats} stratified half/half split(s), seed {s.seed}; features scaled to [0, 1] on the training half "
            f"(sparse ones divided by their largest size); at most {s.max_rows} rows of a set, drawn with the seed; "
            f"{s.kernel} kernel, every objective's own default parameters; at most {s.time_limit:g} s per fit."
        )


def _comparison_mean(values: tuple[float, ...]) -> float:
    """Mean over the splits, for a comparison table; NaN where there are none."""
    return float(np.mean(values)) if values else math.nan


def _comparison_deviation(values: tuple[float, ...]) -> float:
    """Standard deviation over the splits for a comparison table (divisor n - 1); NaN for fewer than two."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def _comparison_mean_cell(values: tuple[float, ...]) -> str:
    """Text of a comparison table's cell: mean and standard deviation over the splits."""
    if not values:
        return ABSENT
    return f"{_comparison_mean(values):.4f}" + (f" +-{_comparison_deviation(values):.4f}" if len(values) > 1 else "")


def _comparison_number_cell(value: float, form: str) -> str:
    """Text of a comparison table's cell: a number in a format; NaN is shown as absent."""
    return ABSENT if math.isnan(value) else format(value, form)


def aligned_comparison_table(rows: list[dict[str, str]]) -> str:
    """Text of a comparison table or another of rows with the same keys: text to the left, numbers to the right."""
    widths = {title: max(len(title), *(len(row[title]) for row in rows)) for title in rows[0]}
    text = ("data", "model", "parameters", "engine")

    def line(cells: dict[str, str]) -> str:
        shown = (cell.ljust(widths[key]) if key in text else cell.rjust(widths[key]) for key, cell in cells.items())
        return "  ".join(shown).rstrip()

    return "\n".join([line({title: title for title in widths}), *map(line, rows)])


def comparison_table_as_text(found: Comparison) -> str:
    """Comparison table as text: aligned columns, footnotes, ranks."""
    marks: dict[str, int] = {}
    rows = []
    for cell in found.cells:
        noted = [marks.setdefault(note, len(marks) + 1) for note in cell.notes]
        shape = cell.shape or (ABSENT,) * 3
        rows.append(
            {
                "data": cell.data,
                **dict(zip(("rows", "columns", "classes"), map(str, shape))),
                "model": cell.objective + (f" ({cell.multiclass})" if cell.multiclass else ""),
                "engine": cell.engine or ABSENT,
                "accuracy": _comparison_mean_cell(cell.accuracy),
                "auc/f1": _comparison_mean_cell(cell.second),
                "gap": _comparison_number_cell(cell.gap, ".1e"),
                "seconds": _comparison_number_cell(cell.seconds, ".2f"),
                "note": " ".join(f"[{mark}]" for mark in noted),
            }
        )
    if not rows:
        return f"{_wrapped_comparison_note(found.title())}\n\nno result yet\n"
    lines = [_wrapped_comparison_note(found.title()), "", aligned_comparison_table(rows), ""]
    told = [
        "accuracy, auc/f1: mean and standard deviation over the splits, on the test half; auc/f1 is the area under the "
        "ROC curve for two classes, macro F1 for more. gap: the largest certified one. seconds: all fits together.",
        *(f"[{mark}] {note}" for note, mark in marks.items()),
    ]
    lines += map(_wrapped_comparison_note, told)
    for binary, kind in KINDS.items():
        ranks = found.ranks(binary)
        if ranks:
            (n,) = {count for _, count in ranks.values()}
            lines += ["", f"average rank by accuracy, {n} set(s) of {kind} (1 is best; without a value: last)"]
            ordered = sorted(ranks.items(), key=lambda item: item[1][0])
            lines += [f"  {rank:6.2f}  {name}" for name, (rank, _) in ordered]
    return "\n".join(lines) + "\n"


def _wrapped_comparison_note(paragraph: str) -> str:
    """Footnote of a comparison table as text, wrapped to the width of the page."""
    return textwrap.fill(paragraph, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _comparison_record(cell: ComparisonCell) -> dict[str, Any]:
    """Record of one result for a comparison table as CSV or JSON; None where there is no value."""
    shape = cell.shape or (None,) * 3
    second = None if shape[2] is None else "auc" if shape[2] <= 2 else "f1_macro"
    values = {
        **dict(zip(("rows", "columns", "classes"), shape)),
        "objective": cell.objective,
        "engine": cell.engine or None,
        "multiclass": cell.multiclass or None,
        "fits": len(cell.accuracy),
        "accuracy": _comparison_mean(cell.accuracy),
        "accuracy_std": _comparison_deviation(cell.accuracy),
        "second_score": second,
        "second": _comparison_mean(cell.second),
        "second_std": _comparison_deviation(cell.second),
        "gap": cell.gap,
        "seconds": cell.seconds,
    }
    plain = {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in values.items()}
    return {"data": cell.data, **plain, "notes": list(cell.notes)}


def comparison_table_as_csv(found: Comparison) -> str:
    """Comparison table as CSV: one line per result; notes are joined by '; '."""
    out = io.StringIO()
    records = [_comparison_record(cell) for cell in found.cells]
    fields = list(records[0]) if records else ["data"]
    writer = csv.DictWriter(out, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**record, "notes": "; ".join(record["notes"])} for record in records)
    return out.getvalue()


def comparison_table_as_json(found: Comparison) -> str:
    """Comparison table as JSON: settings, results and average ranks; an unknown gap is the string "inf"."""
    results = [_comparison_record(cell) for cell in found.cells]
    for record in results:
        record["gap"] = "inf" if record["gap"] == math.inf else record["gap"]
    ranks = {
        kind: {name: {"rank": rank, "sets": count} for name, (rank, count) in found.ranks(binary).items()}
        for binary, kind in KINDS.items()
    }
    whole = {"settings": dataclasses.asdict(found.settings), "results": results, "average_ranks": ranks}
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


WRITERS: dict[str, Callable[[Comparison], str]] = {
    "text": comparison_table_as_text,
    "csv": comparison_table_as_csv,
    "json": comparison_table_as_json,
}
