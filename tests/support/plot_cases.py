"""Axes for the tests of plots, and what can be read from them."""

import pytest

figures = pytest.importorskip("matplotlib.figure", reason="plots need matplotlib")


@pytest.fixture
def ax():
    """Axes without pyplot: nothing to close, no window system needed."""
    return figures.Figure(layout="constrained").add_subplot()


def named(ax):
    """Lines with a label of their own."""
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def entries(ax):
    """Texts of the legend, with the breaks of long names taken out."""
    return [text.get_text().replace("\n", " ") for text in ax.get_legend().get_texts()]


def covers(ax):
    """Whether legend and data meet, and whether the legend is within the figure."""
    ax.figure.draw_without_rendering()
    legend, axes, figure = ax.get_legend().get_window_extent(), ax.get_window_extent(), ax.figure.bbox
    inside = legend.x0 >= -1 and legend.y0 >= -1 and legend.x1 <= figure.x1 + 1 and legend.y1 <= figure.y1 + 1
    return axes.overlaps(legend), inside
