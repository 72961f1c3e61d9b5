"""Pictures of reports as SVG inside the page: curves over two axes, and bars."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

SVG_WIDTH, SVG_HEIGHT, LEFT, BOTTOM, TOP = 560, 260, 64, 34, 12
"""Size of a picture of curves, and of its margins."""
CURVE_COLOURS = ("#1f5fa8", "#c1442e", "#3a8f4d", "#8a5ab0", "#b8860b", "#4a4a4a")
MOST_POINTS = 400
"""Points of a curve that are drawn."""


def nice_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between the ends of an axis of a report's picture."""
    step = 10.0 ** np.floor(np.log10((high - low) / 5.0))
    step *= min((1, 2, 5, 10), key=lambda factor: abs((high - low) / (factor * step) - 5.0))
    return [float(t) * float(step) for t in np.arange(np.ceil(low / step), np.floor(high / step) + 1) + 0.0]


def curves(lines: Sequence[tuple[str, np.ndarray, np.ndarray]], x_title: str, y_title: str) -> str:
    """Draw the curves (name, x, y) of a report's picture, with axes and a legend where there are several."""
    x, y = (np.concatenate([line[axis] for line in lines]) for axis in (1, 2))
    (left, right), (low, high) = _ends(x), _ends(y)

    def across(value: float) -> float:
        return LEFT + (value - left) / (right - left) * (SVG_WIDTH - LEFT - 12)

    def up(value: float) -> float:
        return SVG_HEIGHT - BOTTOM - (value - low) / (high - low) * (SVG_HEIGHT - BOTTOM - TOP)

    drawn = []
    for t in nice_ticks(left, right):
        drawn.append(f'<line class="grid" x1="{across(t):.1f}" x2="{across(t):.1f}" y1="{TOP}" y2="{up(low):.1f}"/>')
        drawn.append(f'<text x="{across(t):.1f}" y="{up(low) + 14:.1f}" text-anchor="middle">{t:g}</text>')
    for t in nice_ticks(low, high):
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{across(right):.1f}" y1="{up(t):.1f}" y2="{up(t):.1f}"/>')
        drawn.append(f'<text x="{LEFT - 5}" y="{up(t) + 4:.1f}" text-anchor="end">{t:g}</text>')
    for k, (name, xs, ys) in enumerate(lines):
        some = np.unique(np.linspace(0, len(xs) - 1, min(len(xs), MOST_POINTS)).astype(int))
        points = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in zip(xs[some], ys[some]))
        colour = CURVE_COLOURS[k % len(CURVE_COLOURS)]
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        if len(lines) > 1:
            drawn.append(f'<text x="{LEFT + 10}" y="{TOP + 14 + 15 * k}" fill="{colour}">{escape(name)}</text>')
    drawn.append(
        f'<text x="{(LEFT + SVG_WIDTH) / 2:.0f}" y="{SVG_HEIGHT - 4}" text-anchor="middle">{escape(x_title)}</text>'
    )
    drawn.append(
        f'<text transform="translate(13 {SVG_HEIGHT // 2}) rotate(-90)" text-anchor="middle">{escape(y_title)}</text>'
    )
    title = f"{y_title} over {x_title}"
    return f'<svg viewBox="0 0 {SVG_WIDTH} {SVG_HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(drawn)}</svg>'


def bars(names: Sequence[str], values: np.ndarray, title: str) -> str:
    """Draw horizontal bars of a report's picture, to the left of the middle where values are negative."""
    largest, middle, row = float(np.abs(values).max()) or 1.0, 0.62 * SVG_WIDTH, 18
    drawn = [f'<line class="grid" x1="{middle:.0f}" x2="{middle:.0f}" y1="0" y2="{row * len(names)}"/>']
    for k, (name, value) in enumerate(zip(names, values)):
        length = abs(value) / largest * 0.3 * SVG_WIDTH
        start, colour = (middle, CURVE_COLOURS[0]) if value >= 0 else (middle - length, CURVE_COLOURS[1])
        drawn.append(f'<rect x="{start:.1f}" y="{row * k + 3}" width="{length:.1f}" height="12" fill="{colour}"/>')
        drawn.append(f'<text x="4" y="{row * k + 13}">{escape(name[:28])}</text>')
        drawn.append(f'<text x="{SVG_WIDTH - 4}" y="{row * k + 13}" text-anchor="end">{value:.4g}</text>')
    size = f"0 0 {SVG_WIDTH} {row * len(names)}"
    return f'<svg viewBox="{size}" role="img" aria-label="{escape(title)}">{"".join(drawn)}</svg>'


def _ends(values: np.ndarray) -> tuple[float, float]:
    """Ends of a picture's axis: those of the values, apart where all are one."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if high - low > 1e-12 * max(abs(low), abs(high), 1e-300) else (low - 0.5, high + 0.5)
