"""What the margin variance is worth: LDM beside the SVM of its grid, both tuned by five folds, on small training sets.

    python asv_bench/variance.py --data DIR [--sets NAME ...] [--draws 6] [--seed 0] [--write docs/variance.md]

DIR holds data sets as `mdlearn compare` takes them. More than two classes become two: the first half of the sorted
labels against the rest. A draw takes training rows at random, classes in the proportion of the set (or 10:1), flips
labels where asked, brings columns to mean 0 and variance 1 on them, and tests on up to 2000 other rows with their own
labels. Accuracy, or balanced accuracy where classes are 10:1. A difference is LDM minus SVM in points, averaged over
the draws of a set; its mean and standard error are over sets.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mdlearn
from mdlearn.experiments.data_set_files import find_data_sets, load_data_set

REGIMES = {
    "50 rows": (50, 0.0, None),
    "50 rows, 20 % flipped": (50, 0.2, None),
    "200 rows": (200, 0.0, None),
    "200 rows, 20 % flipped": (200, 0.2, None),
    "220 rows, classes 10:1": (220, 0.0, 10),
}
"""Training rows, share of flipped labels, rows of the larger class for each one of the smaller."""
TESTED, MOST_COLUMNS = 2000, 400
COSTS = {"linear": (0.01, 0.1, 1.0, 10.0, 100.0), "rbf": (0.1, 1.0, 10.0, 100.0)}
WIDTHS = (0.25, 1.0, 4.0)
"""gamma in units of 1 / (d Var X)."""
SHARES = (2.0**-10, 2.0**-8, 2.0**-6, 2.0**-4, 2.0**-2, 1.0)
"""lambda1 in units of C m, beside 0; lambda2 is a quarter of it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per set and regime, and the table; write it where that is asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--sets", nargs="*", metavar="NAME", help="default: all that are large enough")
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table between its markers in FILE")
    given = parser.parse_args(argv)
    files = find_data_sets(given.data)
    sets = {name: two for name in given.sets or files if (two := two_classes(files[name])) is not None}
    lines = [
        "| training | kernel | SVM | LDM | LDM minus SVM, points | sets better / worse |",
        "|---|---|---|---|---|---|",
    ]
    for regime, kernel in itertools.product(REGIMES, COSTS):
        scores = {name: draws(*two, regime, kernel, given.draws, given.seed) for name, two in sets.items()}
        for name, both in scores.items():
            print(f"{regime}; {kernel}; {name}: SVM {both[:, 0].mean():.4f}, LDM {both[:, 1].mean():.4f}", flush=True)
        lines.append(line(regime, kernel, np.array([both.mean(axis=0) for both in scores.values()])))
        print(lines[-1], flush=True)
    command = f"python asv_bench/variance.py --data DIR --draws {given.draws} --seed {given.seed}"
    head = f"`{command}`, {datetime.datetime.now(tz=datetime.UTC).date()}, {len(sets)} sets: {', '.join(sets)}."
    table = head + "\n\n" + "\n".join(lines)
    print(f"\n{table}")
    if given.write is not None:
        before, _, rest = given.write.read_text(encoding="utf-8").partition("<!-- variance -->")
        after = rest.partition("<!-- end of variance -->")[2]
        text = f"{before}<!-- variance -->\n{table}\n<!-- end of variance -->{after}"
        given.write.write_text(text, encoding="utf-8")
    return 0


def line(regime: str, kernel: str, means: np.ndarray) -> str:
    """The row of a table: mean scores of both machines, and how they differ from set to set."""
    apart = 100.0 * (means[:, 1] - means[:, 0])
    error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.nan
    svm, ldm = means.mean(axis=0)
    counts = f"{int((apart > 0).sum())} / {int((apart < 0).sum())}"
    return f"| {regime} | {kernel} | {svm:.4f} | {ldm:.4f} | {apart.mean():+.2f} +- {error:.2f} | {counts} |"


def two_classes(path: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Complete dense rows and labels -1, 1 of a file; None where it has too few rows of a class, or many columns."""
    data = load_data_set(path)
    if not isinstance(data.X, np.ndarray) or data.X.shape[1] > MOST_COLUMNS:
        return None
    X = data.X.astype(float)
    known = np.isfinite(X).all(axis=1)
    labels, codes = np.unique(data.y, return_inverse=True)
    y = np.where(codes < (len(labels) + 1) // 2, -1.0, 1.0)[known]
    return None if min((y < 0).sum(), (y > 0).sum()) < 240 else (X[known], y)


def draws(X: np.ndarray, y: np.ndarray, regime: str, kernel: str, n: int, seed: int) -> np.ndarray:
    """Scores of SVM and LDM, shape (n, 2)."""
    m, flipped, ratio = REGIMES[regime]
    found = []
    for draw in range(n):
        rng = np.random.default_rng([seed, draw, m])
        order = rng.permutation(len(y))
        large, small = order[y[order] < 0], order[y[order] > 0]
        few = m // (ratio + 1) if ratio else round(m * float((y > 0).mean()))
        train = np.concatenate([large[: m - few], small[:few]])
        others = np.setdiff1d(order, train)
        test = others if len(others) <= TESTED else rng.choice(others, TESTED, replace=False)
        labels = np.where(rng.random(m) < flipped, -y[train], y[train])
        scale = X[train].std(axis=0)
        rows = (X - X[train].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
        chosen = (tuned(name, rows[train], labels, kernel, ratio) for name in ("svm", "ldm"))
        found.append([score(one, rows[test], y[test], balanced=ratio is not None) for one in chosen])
    return np.array(found)


def tuned(name: str, X: np.ndarray, y: np.ndarray, kernel: str, ratio: int | None) -> Any:
    """The model of the best point of the grid by five folds; classes 10:1 count alike."""
    unit = 1.0 / (X.shape[1] * X.var())
    widths = [{}] if kernel == "linear" else [{"gamma": width * unit} for width in WIDTHS]
    points: list[dict[str, Any]] = []
    for C, width in itertools.product(COSTS[kernel], widths):
        shares = (0.0, *SHARES) if name == "ldm" else (0.0,)
        for lambda1 in (share * C * len(y) for share in shares):
            own = {"lambda1": lambda1, "lambda2": lambda1 / 4.0} if name == "ldm" else {}
            points.append({"C": C, **width, **own})
    weight = "balanced" if ratio else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.select(
            name,
            X,
            y,
            points,
            kernel=kernel,
            class_weight=weight,
            tol=1e-4,
            scoring="f1_macro" if ratio else "accuracy",
        ).model


def score(model: Any, X: np.ndarray, y: np.ndarray, balanced: bool) -> float:
    """Accuracy; balanced: the mean of the two classes' own."""
    right = model.predict(X) == y
    return float(np.mean([right[y == label].mean() for label in (-1.0, 1.0)])) if balanced else float(right.mean())


if __name__ == "__main__":
    sys.exit(main())
