"""Made data sets of the catalogue's shapes, and runs of the command `reproduce` in a folder."""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from pathlib import Path
from unittest import mock

import numpy as np
from mdlearn_papers.catalogue import SOURCES

DOCUMENTS = Path(__file__).resolve().parents[1] / "docs"
FOLDER = Path(os.environ.get("MDLEARN_SHARED") or Path(__file__).resolve().parents[4] / "shared") / "data"
"""Of real data sets; what needs them is skipped where it is absent."""


def names():
    """Names of all sets in the folder; empty where it is absent."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


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


def main(arguments):
    """Exit code of `python -m mdlearn`, in this process."""
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    try:
        with mock.patch.object(sys, "argv", ["mdlearn", *arguments]):
            runpy.run_module("mdlearn", run_name="__main__")
    except SystemExit as ended:
        return ended.code
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook


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


def svml(A, y, nu, itmax, tol=1e-5, sign=-1.0, alpha=None):
    """The published listing, line by line; `sign` is that of the column of ones and of gamma."""
    m, n = A.shape
    alpha = 1.9 / nu if alpha is None else alpha
    e = np.ones(m)
    H = y[:, None] * np.hstack([A, sign * e[:, None]])
    S = H @ np.linalg.inv(np.eye(n + 1) / nu + H.T @ H)
    u = nu * (1 - S @ (H.T @ e))
    old, it = u + 1, 0
    while it < itmax and np.linalg.norm(old - u) > tol:
        z = 1 + np.maximum(((u / nu + H @ (H.T @ u)) - alpha * u) - 1, 0)
        old, u = u, nu * (z - S @ (H.T @ z))
        it += 1
    return it, np.linalg.norm(u - old), A.T @ (y * u), sign * (y * u).sum(), u
