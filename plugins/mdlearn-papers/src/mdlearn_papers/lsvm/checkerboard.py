"""Slides 21 to 24: the checkerboard, by nearest neighbours, by the fixed point cut off twice, and at the optimum."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from mdlearn import ConvergenceWarning, datasets, fit
from mdlearn_papers.comparing import ABSENT
from mdlearn_papers.documents import Block, Heading, Picture, Report, Table
from mdlearn_papers.lsvm.trials import FOLDS, PUBLISHED
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import generator
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit

PIXELS, FIELDS = 200, 4
FIELD = PIXELS // FIELDS
GAMMA, NU = 1.0 / (2.0 * FIELD**2), 1e5
"""Width (standard deviation) of the kernel: one field. nu: nearly all weight on the errors."""
NEIGHBOURS = (1, 3, 5, 7, 9, 11, 15)
SLIDES = {"published": "58 s", "long": "2.85 h"}
"""Seconds on the slides, on a Pentium II of 400 MHz."""
OTHERS = tuple((gamma, nu) for gamma in (GAMMA, 2.5 * GAMMA, 5 * GAMMA) for nu in (1.0, 100.0, NU))


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """One per method."""
    name = "checkerboard" if sets.has("checkerboard") else "generated"
    return [Unit(0, name, part) for part in ("neighbours", "published", "newton", "others", "long")]


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """One method on the board."""
    X, y = points(unit.data, sets, settings)
    if unit.part == "neighbours":
        return [_neighbours(unit, X, y, settings)]
    if unit.part == "others":
        return _others(unit, X, y)
    fixed: dict[str, Any] = {"solver": "newton"}
    if unit.part == "published":
        fixed = dict(PUBLISHED)
    elif unit.part == "long":
        # Its own end would come at a step of 1e-5 or at 100 iterations; here the number of iterations ends it.
        fixed = {"solver": "smw", "tol": 1e-12, "max_iter": longest(settings)}
    return [_machine(unit.data, unit.part, X, y, fixed)]


def longest(settings: Settings) -> int:
    """Iterations of the long run."""
    return 1000 if settings.quick else 100_000


def points(name: str, sets: Sets, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """The 1000 points of the set, or as many drawn anew, on pixels 0 to 199; labels -1 and +1."""
    if name == "checkerboard":
        found = sets.get(name)
        X = np.asarray(found.X, dtype=np.float64)
        if X.min() < 0 or not PIXELS // 2 < X.max() < PIXELS:
            raise ValueError(f"the points of data set checkerboard need to be pixels 0 to {PIXELS - 1}")
        return X, np.where(found.y > 0, 1.0, -1.0)
    X, y = datasets.checkerboard(1000, FIELDS, random_state=generator(settings.seed, name, 0))
    return np.floor(FIELD * X), y


def pixels() -> np.ndarray:
    """All 200 x 200 pixels, row by row from below: columns x and y."""
    x, y = np.meshgrid(np.arange(float(PIXELS)), np.arange(float(PIXELS)))
    return np.column_stack([x.ravel(), y.ravel()])


def board(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """True labels of all pixels; which colour is +1 is told by the points."""
    colour = _colour(X)
    sign = 1.0 if (colour * y).sum() >= 0 else -1.0
    return sign * _colour(pixels())


def _colour(X: np.ndarray) -> np.ndarray:
    return np.where(np.floor(X / FIELD).sum(axis=1) % 2 == 0, 1.0, -1.0)


def _machine(
    data: str, label: str, X: np.ndarray, y: np.ndarray, fixed: dict[str, Any], gamma: float = GAMMA, nu: float = NU
) -> Record:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        started = time.perf_counter()
        model = fit("lsvm", X, y, kernel="rbf", gamma=gamma, nu=nu, bias="none", n_threads=1, **fixed)
        seconds = time.perf_counter() - started
    values = _judged(model.predict(pixels()), model.predict(X), X, y) | {"iterations": float(model.n_iter)}
    certificate = model.certificate
    chosen = {"gamma": gamma, "nu": nu}
    return Record(data, label, 0, values, chosen, 1, int(certificate.converged), certificate.gap, seconds)


def _judged(shown: np.ndarray, fitted: np.ndarray, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Accuracy on all pixels and on the points, and the picture."""
    return {
        "accuracy": float((shown == board(X, y)).mean()),
        "training": float((fitted == y).mean()),
        "picture": (shown > 0).astype(int),
    }


def _others(unit: Unit, X: np.ndarray, y: np.ndarray) -> list[Record]:
    """Other widths and weights, by the published end and at the optimum: what the choice above changes."""
    records = []
    for gamma, nu in OTHERS:
        for kind, fixed in (("published", PUBLISHED), ("newton", {"solver": "newton"})):
            record = _machine(unit.data, f"{kind}, gamma {gamma:g}, nu {nu:g}", X, y, dict(fixed), gamma, nu)
            record.values.pop("picture")
            records.append(record)
    return records


def _neighbours(unit: Unit, X: np.ndarray, y: np.ndarray, settings: Settings) -> Record:
    """The number of neighbours by tenfold cross-validation; the smallest of equal ones."""
    started = time.perf_counter()
    order = generator(settings.seed, unit.data, 1).permutation(y.shape[0])
    hits = dict.fromkeys(NEIGHBOURS, 0)
    for i in range(FOLDS):
        held = np.zeros(y.shape[0], dtype=bool)
        held[order[i::FOLDS]] = True
        for k in NEIGHBOURS:
            hits[k] += int((nearest(X[~held], y[~held], X[held], k) == y[held]).sum())
    best = max(NEIGHBOURS, key=hits.__getitem__)
    shown = nearest(X, y, pixels(), best)
    seconds = time.perf_counter() - started
    values = _judged(shown, nearest(X, y, X, best), X, y)
    return Record(unit.data, "neighbours", 0, values, {"k": best}, seconds=seconds)


def nearest(X: np.ndarray, y: np.ndarray, at: np.ndarray, k: int) -> np.ndarray:
    """Majority among the k (odd) nearest rows."""
    _, rows = cKDTree(X).query(at, k=[*range(1, k + 1)])
    return np.where(y[rows].sum(axis=1) > 0, 1.0, -1.0)


STUDY = Study("lsvm-checkerboard", units, run)


def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """A table, the pictures, and what other widths and weights give."""
    main = {record.method: record for record in records if record.method in _labels(settings)}
    X, y = points("checkerboard" if sets.has("checkerboard") else "generated", sets, settings)
    told = "The 1000 points of the set that came with the LSVM and SSVM programs"
    if not sets.has("checkerboard"):
        told = "1000 points drawn anew, because the set of the LSVM and SSVM programs is missing"
    blocks: list[Block] = [
        f"{told}, on a board of {PIXELS} x {PIXELS} pixels with {FIELDS} x {FIELDS} fields. Accuracy is the share of "
        f"all {PIXELS**2:,} pixels on which the prediction is the colour of the field. The slides show pictures and "
        "times only; kernel width and nu did not survive. Here the Gaussian kernel has a standard deviation of one "
        f"field (gamma = 1/(2 {FIELD}^2) = {GAMMA:g}) and nu = {NU:g}, no bias. "
        "The long run takes two to six minutes, the others seconds.",
        _table(main, settings),
        Picture("lsvm-checkerboard", lambda figure: _draw(figure, X, y, main, settings), CAPTION, (10.0, 7.2)),
        _reading(main),
        Heading("Other widths and weights"),
        _choices(records),
    ]
    return Report("The checkerboard (LSVM slides 21 to 24)", blocks)


CAPTION = (
    "The points on the true board (slide 21) and what is predicted for every pixel. Dark fields are +1; points are "
    "open (+1) and filled (-1). Thin lines are the borders of the fields."
)


def _labels(settings: Settings) -> dict[str, str]:
    n = longest(settings)
    return {
        "neighbours": "nearest neighbours",
        "published": "LSVM, published end",
        "long": f"LSVM, {n:,} iterations",
        "newton": "LSVM, newton",
    }


def _table(main: dict[str, Record], settings: Settings) -> Table:
    rows = []
    for key, label in _labels(settings).items():
        if key in main:
            one = main[key]
            if not one.values:
                rows.append([label, *[ABSENT] * 6])
                continue
            iterations = f"{one.values['iterations']:,.0f}" if "iterations" in one.values else ABSENT
            if "k" in one.chosen:
                label += f" (k = {one.chosen['k']})"
            rows.append(
                [
                    label,
                    f"{100 * one.values['accuracy']:.2f}",
                    f"{100 * one.values['training']:.2f}",
                    iterations,
                    f"{one.gap:.1e}" if one.fits else ABSENT,
                    f"{one.seconds:.2f}",
                    ABSENT if settings.quick and key == "long" else SLIDES.get(key, ABSENT),
                ]
            )
    header = ["method", "pixels", "training", "iterations", "gap", "seconds", "on the slides"]
    caption = (
        "Accuracies in per cent. On the slides: 100 and 100,000 iterations on a Pentium II of 400 MHz. One thread."
    )
    return Table(header, rows, caption)


def _reading(main: dict[str, Record]) -> str:
    if not {"published", "long", "newton"} <= main.keys() or not all(one.values for one in main.values()):
        return "Not all methods have been run yet."
    first, last, best = (main[key] for key in ("published", "long", "newton"))
    text = (
        f"The published end has a gap of {first.gap:.1e}: no optimum, although the picture is good. "
        f"{last.values['iterations']:,.0f} iterations leave a gap of {last.gap:.1e}; Newton steps reach "
        f"{best.gap:.1e} in {best.seconds:.2f} s. Of the pixels {100 * first.values['accuracy']:.2f}, "
        f"{100 * last.values['accuracy']:.2f} and {100 * best.values['accuracy']:.2f} per cent are right."
    )
    if "neighbours" in main:
        text += f" Nearest neighbours have {100 * main['neighbours'].values['accuracy']:.2f} per cent right."
    return text


def _choices(records: Sequence[Record]) -> Table:
    found = {record.method: record for record in records if record.values}
    rows = []
    for gamma, nu in OTHERS:
        pair = [found.get(f"{kind}, gamma {gamma:g}, nu {nu:g}") for kind in ("published", "newton")]
        told = [ABSENT if one is None else f"{100 * one.values['accuracy']:.2f}" for one in pair]
        gaps = [ABSENT if one is None else f"{one.gap:.1e}" for one in pair]
        rows.append([f"{gamma:g}", f"{nu:g}", told[0], gaps[0], told[1], gaps[1]])
    header = ["gamma", "nu", "published end", "gap", "newton", "gap"]
    return Table(header, rows, "Pixels that are right, in per cent, for other widths and weights.")


def _draw(figure: Any, X: np.ndarray, y: np.ndarray, main: dict[str, Record], settings: Settings) -> None:
    labels = _labels(settings)
    shown = {"the board and its points": board(X, y) > 0}
    for key, label in labels.items():
        if key in main and main[key].values:
            one = main[key]
            shown[f"{label}: {100 * one.values['accuracy']:.1f} %"] = np.array(one.values["picture"]) > 0
    axes = figure.subplots(2, 3).ravel()
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    for i, (ax, (title, picture)) in enumerate(zip(axes, shown.items())):
        area = (-0.5, PIXELS - 0.5, -0.5, PIXELS - 0.5)
        dark = 1.0 - 0.45 * picture.reshape(PIXELS, PIXELS)
        ax.imshow(dark, origin="lower", extent=area, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
        for place in range(FIELD, PIXELS, FIELD):
            ax.axhline(place - 0.5, color="black", linewidth=0.6)
            ax.axvline(place - 0.5, color="black", linewidth=0.6)
        if i == 0:
            for sign, face in ((1.0, "white"), (-1.0, "black")):
                at = X[y == sign]
                ax.plot(*at.T, "o", markersize=2, markerfacecolor=face, markeredgecolor="black", markeredgewidth=0.4)
        ax.set_title(title, fontsize="medium")
        ax.set_xticks([])
        ax.set_yticks([])


EXPERIMENT = Experiment(
    "lsvm-checkerboard", "LSVM slides 21 to 24: the checkerboard, after few and many iterations", STUDY, report
)
