"""``python -m mdlearn demo``: SVM and LDM on real data that ships with scikit-learn."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mdlearn import margins
from mdlearn.api import fit
from mdlearn.experiments.comparison_tables import aligned_comparison_table
from mdlearn.experiments.data_set_files import DataSetHalves, scaled_data_set_halves
from mdlearn.model.model import Model
from mdlearn.output_files import OutputFile
from mdlearn.plotting import cumulative_margins

PICTURE = "mdlearn-demo-margins.png"
WRITER = "mdlearn demo"
"""What the picture says that it was written by."""


@dataclass(frozen=True)
class DemoFit:
    """Fit of the demo: a data set of scikit-learn, an objective and a kernel."""

    data: str
    objective: str
    kernel: str

    @property
    def name(self) -> str:
        """For the table and the legend."""
        return f"{self.objective} {self.kernel}"

    def arguments(self, m: int) -> dict[str, Any]:
        """Arguments of `fit` for m rows. The margin weights grow with C m, as the sum of hinge losses does."""
        C = 1.0
        weights = {"lambda1": C * m / 64, "lambda2": C * m / 256} if self.objective == "ldm" else {}
        return {"C": C, "kernel": self.kernel, **weights}


TASKS = (
    DemoFit("breast_cancer", "svm", "linear"),
    DemoFit("breast_cancer", "ldm", "linear"),
    DemoFit("breast_cancer", "svm", "rbf"),
    DemoFit("breast_cancer", "ldm", "rbf"),
    DemoFit("digits", "svm", "rbf"),
    DemoFit("digits", "ldm", "rbf"),
)


def run_demo(output_directory: str | os.PathLike[str] | None = None, force: bool = False) -> int:
    """Fit the models of the demo, print a table, and write the plot of cumulative training margins.

    `output_directory`: where ``mdlearn-demo-margins.png`` goes. Default: the current directory; `force`: whether a file
    of this name is overwritten that is not of an earlier demo. Returns 0, or 1 after a message on standard error.
    """
    try:
        from matplotlib.figure import Figure
        from sklearn import datasets
    except ImportError as error:
        return _demo_failure(f'the demo needs scikit-learn and matplotlib ({error}); run: pip install "mdlearn[demo]"')
    try:
        picture = OutputFile(Path(output_directory or ".").resolve() / PICTURE, replaces=_is_demo_picture, force=force)
    except (OSError, ValueError) as error:
        return _demo_failure(str(error))

    parts = {}
    for name in dict.fromkeys(task.data for task in TASKS):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        parts[name] = demo_halves(X, y)
    rows, curves = [], {}
    for i, task in enumerate(TASKS):
        data = parts[task.data]
        print(f"[{i + 1}/{len(TASKS)}] {task.name} on {task.data}: {len(data.y)} rows", file=sys.stderr, flush=True)
        started = time.perf_counter()
        model = fit(task.objective, data.X, data.y, verbose=1, **task.arguments(len(data.y)))
        rows.append(demo_table_row(task, model, data, time.perf_counter() - started))
        if task.data == TASKS[0].data:
            curves[task.name] = model.margins(data.X, data.y)
    print(aligned_comparison_table(rows))
    print("\nmin, mean, var: of the training margins; gap: certified bound on the relative excess of the objective.")

    # A Figure of its own: no window system and no global state are touched.
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    ax = cumulative_margins(curves, ax=figure.add_subplot())
    ax.set_title(f"Training margins, {TASKS[0].data.replace('_', ' ')}")
    picture.write(partial(figure.savefig, format="png", dpi=150, metadata={"Software": WRITER}))
    print(f"Cumulative margins: {picture.path}")
    return 0


def _is_demo_picture(path: str) -> bool:
    """Whether a file is a picture that this demo wrote."""
    with open(path, "rb") as file:
        head = file.read(200)
    return head.startswith(b"\x89PNG") and WRITER.encode() in head


def demo_halves(X: np.ndarray, y: np.ndarray) -> DataSetHalves:
    """Split the demo's data set: a fixed random half for training, the rest for the test."""
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    X_train, X_test = scaled_data_set_halves(X[train], X[test])
    return DataSetHalves(X_train, y[train], X_test, y[test])


def demo_table_row(task: DemoFit, model: Model, data: DataSetHalves, seconds: float) -> dict[str, str]:
    """Row of the demo's table: column title to text."""
    z = model.margins(data.X, data.y)
    return {
        "data": task.data,
        "model": task.name,
        "parameters": " ".join(
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in model.params.items()
        ),
        "test acc.": f"{model.score(data.X_test, data.y_test):.4f}",
        "min": f"{margins.minimum(z):.3f}",
        "mean": f"{margins.mean(z):.3f}",
        "var": f"{margins.variance(z):.3f}",
        "objective": f"{model.certificate.objective:.6g}",
        "gap": f"{model.certificate.gap:.1e}",
        "engine": model.solver,
        "seconds": f"{seconds:.2f}",
    }


def _demo_failure(message: str) -> int:
    """Print to standard error why the demo failed, and return the exit code 1."""
    print(f"mdlearn demo: {message}", file=sys.stderr)
    return 1
