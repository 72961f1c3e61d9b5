"""Composites of an objective, checked: all that its bound is made of without a fit, and the certificate of a fit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from mdlearn.data.features.kernel_rounding import UNIT
from mdlearn.forms.composite import Composite
from mdlearn.forms.joint.composite_point import row_lengths
from mdlearn.model.task import task_of
from mdlearn.objectives.base import Objective
from mdlearn.testing.reference import ROUNDING, reference_fit, reference_form, reference_sample, reference_task
from mdlearn.testing.require import require

COEFFICIENT_SCALES = (0.1, 1.0, 10.0)
"""Lengths of random coefficients and slopes at which a composite is checked."""
DIFFERENCE_STEP = 1e-5
"""Half the distance of two values whose difference is compared with a composite's gradient."""
LEAST_GRID = np.linspace(-1.0, 1.0, 7)
"""Places along each of three coefficients at which a composite's `least` is searched by brute force."""
FIRST_GRID_REACH, GRID_ZOOMS = 20.0, 14
"""Half the width of the first such grid; how often it is halved, around the best place."""
ROUNDINGS_OF_SIZES = 64.0
"""Roundings, in units of a composite's `sizes`, by which a gradient may change with the order of the rows."""


def check_composite(objective: Any) -> None:
    """Check an objective's Composite: at, at_zero, convex, prox, least, sizes and the like, at random coefficients."""
    task = reference_task(objective)
    if type(task).form is Objective.form:
        return
    several = task_of(task).by_class and "joint" in task.multiclass
    for k in (2, 3) if several else (2,):
        X, y, _ = reference_sample(objective, k)
        form = reference_form(task, X, y, task.default_bias, "linear")
        if not isinstance(form, Composite):
            return
        title = f"{task.name}: {type(form).__name__}"
        require(not form.unproven, f"{title} declares neither convex = True nor a residual; no fit of it can converge")
        _check_composite_at_zero(form, title)
        _check_composite_gradient(form, title)
        _check_composite_convexity(form, title)
        _check_composite_prox(form, title)
        if form.convex:
            _check_composite_least(form, title)
            order = np.random.default_rng(1).permutation(len(X))
            other = reference_form(task, X[order], y[order], task.default_bias, "linear")
            _check_composite_sizes(form, other, title)


def _random_composite_coefficients(form: Composite, seed: int) -> Iterator[np.ndarray]:
    """Random coefficients at which a composite is checked, of several lengths."""
    rng = np.random.default_rng(seed)
    for scale in COEFFICIENT_SCALES:
        yield scale * rng.standard_normal(form.shape)


def _check_composite_at_zero(form: Composite, title: str) -> None:
    value = form.objective(form.at(np.zeros(form.shape)))
    require(
        abs(value - form.at_zero) <= ROUNDING * max(abs(value), abs(form.at_zero)),
        f"{title}.at_zero is {form.at_zero!r}, but at() and penalty() give {value!r} at W = 0",
    )


def _check_composite_gradient(form: Composite, title: str) -> None:
    """Check every entry of a composite's gradient by the difference of two values."""
    for W in _random_composite_coefficients(form, 0):
        look = form.at(W)
        step = DIFFERENCE_STEP * max(1.0, float(np.abs(W).max()))
        for place in np.ndindex(*form.shape):
            V = np.zeros(form.shape)
            V[place] = step
            ahead, behind = form.at(W + V).value, form.at(W - V).value
            told, rate = float(look.gradient[place]), (ahead - behind) / (2.0 * step)
            size = float(np.abs(look.gradient).max()) + ROUNDING * abs(look.value) / step
            require(
                abs(told - rate) <= 1e-5 * size,
                f"{title}.at: entry {place} of the gradient is {told!r}, the value changes by {rate!r}; correct one of "
                "them",
            )


def _check_composite_convexity(form: Composite, title: str) -> None:
    """Check that h is convex, at random midpoints, and not below 0, where a composite declares that."""
    for V, W in product(_random_composite_coefficients(form, 2), _random_composite_coefficients(form, 3)):
        ends, middle = (form.at(V).value, form.at(W).value), form.at(0.5 * (V + W)).value
        mean = 0.5 * sum(ends)
        require(
            not form.nonnegative or min(ends) >= 0.0,
            f"{title}.nonnegative is True, but at() gives the value {min(ends)!r}",
        )
        require(
            not form.convex or middle <= mean + ROUNDING * max(map(abs, ends)),
            f"{title}.convex is True, but half-way between two points h is {middle!r}, above {mean!r}, the mean of its "
            "values there; leave the declaration out and write residual()",
        )


def _check_composite_prox(form: Composite, title: str) -> None:
    """Check that no entry of a composite's prox can be changed to a smaller penalty(W) + |W - V|^2 / (2 step)."""
    for V, step in product(_random_composite_coefficients(form, 6), (0.1, 1.0, 10.0)):
        W = form.prox(V.copy(), step)

        def value(U: np.ndarray, V: np.ndarray = V, step: float = step) -> float:
            return form.penalty(U) + 0.5 * float(np.square(U - V).sum()) / step

        here = value(W)
        for place, share in product(np.ndindex(*form.shape), (1.0, 1e-2, 1e-4)):
            for change in (share * (V[place] - W[place]), -share * W[place], share * step, -share * step):
                U = W.copy()
                U[place] += change
                require(
                    here <= value(U) + ROUNDING * max(1.0, abs(here)),
                    f"{title}.prox: penalty(W) + |W - V|^2 / (2 step) is {here!r} at W = prox(V, {step:g}), and "
                    f"{value(U)!r} where entry {place} is {float(U[place])!r} for {float(W[place])!r}, with "
                    f"V = {V.tolist()}",
                )


def _check_composite_least(form: Composite, title: str) -> None:
    """Check a composite's `least` against a search over three coefficients, the others 0: no value is below it."""
    rng = np.random.default_rng(4)
    entries = list(np.ndindex(*form.shape))
    for scale in COEFFICIENT_SCALES:
        chosen = [entries[i] for i in rng.permutation(len(entries))[:3]]
        at = tuple(np.array(chosen).T)
        G = np.zeros(form.shape)
        G[at] = scale * rng.standard_normal(len(chosen))
        least, centre, best = form.least(G, np.zeros(form.shape[0])), np.zeros(len(chosen)), 0.0
        for zoom in range(GRID_ZOOMS):
            for step in product(LEAST_GRID, repeat=len(chosen)):
                V = np.zeros(form.shape)
                V[at] = place = centre + FIRST_GRID_REACH * 0.5**zoom * np.array(step)
                ridge = 0.5 * float(form.ridge @ np.square(V).sum(axis=1))
                value = float((G * V).sum()) + ridge + form.penalty(V)
                if value < best:
                    best, nearest = value, place
            centre = nearest if best < 0.0 else centre
        require(
            least <= best + ROUNDING * max(abs(best), abs(least)),
            f"{title}.least returns {least!r}, but <G, V> + ridge + penalty is {best!r} at some V; it is too high",
        )


def _check_composite_sizes(form: Composite, other: Composite, title: str) -> None:
    """Check a composite's sizes against what another order of the rows does to its gradient, which is rounding alone.

    Also where terms cancel: next to a minimum of h.
    """
    from scipy.optimize import minimize

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        look = form.at(flat.reshape(form.shape))
        return look.value, look.gradient.ravel()

    flat = minimize(value, np.zeros(form.shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 50}).x
    for W in [flat.reshape(form.shape), *_random_composite_coefficients(form, 5)]:
        look = form.at(W)
        require(
            np.shape(look.sizes) == form.shape[:1],
            f"{title}.at: sizes have the shape {np.shape(look.sizes)}, {form.shape[:1]} is needed",
        )
        lost = row_lengths(look.gradient - other.at(W).gradient)
        j = int(np.argmax(lost - ROUNDINGS_OF_SIZES * UNIT * look.sizes))
        require(
            lost[j] <= ROUNDINGS_OF_SIZES * UNIT * look.sizes[j],
            f"{title}.at: sizes[{j}] is {look.sizes[j]!r}, but another order of the rows changes row {j} of the "
            f"gradient by {lost[j]!r}; sizes are the sums of the absolute values of its terms",
        )


def check_composite_certificate(objective: Any) -> None:
    """Check the certificate of an objective's own Composite: its value, and that nothing falls below its bound."""
    X, y, _ = reference_sample(objective)
    model = reference_fit(objective, X, y)
    form = reference_form(reference_task(objective), X, y, model.bias, "linear")
    if not isinstance(form, Composite):
        return
    W = model.coef_.T if model.bias == "none" else np.vstack([model.coef_.T, model.intercept_])
    certificate, rng = model.certificate, np.random.default_rng(0)
    scale = max(abs(certificate.objective), abs(form.unit * form.at_zero))

    def value(V: np.ndarray) -> float:
        return float(form.unit * form.objective(form.at(V)))

    require(
        abs(certificate.objective - value(W)) <= ROUNDING * scale,
        f"{model.objective}: the certificate says {certificate.objective!r}, but at() and penalty() give {value(W)!r} "
        "at the model's coefficients; let them depend on W alone",
    )
    for size in np.logspace(-6, 1, 100):
        V = W + size * (float(np.abs(W).max()) or 1.0) * rng.standard_normal(W.shape)
        require(
            value(V) >= certificate.lower_bound - ROUNDING * scale,
            f"{model.objective}: other coefficients reach {value(V)!r}, below the certified bound "
            f"{certificate.lower_bound!r}; least() is too high, or the smooth part is not convex",
        )
