"""Made data sets of the catalogue's shapes, and runs of the command `reproduce` in a folder."""

from __future__ import annotations

import json

import numpy as np

from mdlearn.cli import main
from mdlearn.experiments.papers.catalogue import SOURCES


def made(name, seed=0):
    """X and y of the shape of a set: classes one deviation apart in all, rows in random order; votes are yes or no."""
    source, rng = SOURCES[name], np.random.default_rng([seed, len(name)])
    y = rng.permutation(np.repeat(np.arange(len(source.counts)), source.counts))
    labels = 2.0 * y - 1.0 if len(source.counts) == 2 else y
    X = rng.standard_normal((source.rows, source.columns)) + y[:, None] / np.sqrt(source.columns)
    return (X > 0.5 if name == "vote" else X), labels


def write_sets(folder, *names):
    """Write made sets as NumPy archives."""
    folder.mkdir(exist_ok=True)
    for name in names:
        X, y = made(name)
        np.savez(folder / f"{name}.npz", X=X, y=y)
    return folder


def reproduce(name, output, *arguments):
    """Exit code of a quick run."""
    return main(["reproduce", name, "--quick", "--output", str(output), *map(str, arguments)])


def records_of(folder):
    """(unit, records) of every line but the first, without what differs from run to run: seconds."""
    lines = (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    found = {}
    for line in map(json.loads, lines):
        for one in line["records"]:
            one["seconds"] = 0.0
            one["values"].pop("training_seconds", None)
        found[tuple(line["unit"].values())] = line["records"]
    return found
