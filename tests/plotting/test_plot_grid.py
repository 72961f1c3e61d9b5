"""`mdlearn.plotting.grid`: scores of a selection as a heat map."""

from __future__ import annotations

import ast
from types import SimpleNamespace

import numpy as np
import plot_cases
import pytest
from documents import ROOT
from numpy.testing import assert_array_equal

import mdlearn
from mdlearn import plotting

colors = pytest.importorskip("matplotlib.colors", reason="plots need matplotlib")
is_color_like, to_rgb = colors.is_color_like, colors.to_rgb

pytestmark = pytest.mark.extras

ax = plot_cases.ax  # pytest finds fixtures by the names of the module


def selection(**changed):
    """A selection without a fit: C and gamma, and a third one that makes no difference at 0."""
    points = [{"C": C, "gamma": g, "shift": s} for s in (0, 1) for C in (10.0, 1.0) for g in (0.5, 2.0, 0.125)]
    scores = np.round(np.linspace(0.5, 0.95, len(points)), 3)
    scores[[0, 6]] = scores[[6, 0]]  # at C 10 and gamma 0.5 the first shift is the better one
    made = {"points": points, "mean_scores": scores, "best_index": len(points) - 1, "scoring": "f1_macro", **changed}
    return SimpleNamespace(**made)


def picture(ax):
    (image,) = ax.images
    return np.ma.filled(image.get_array(), np.nan)


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_cells_are_the_best_scores_at_two_values(ax):
    made = selection()
    assert plotting.grid(made, "gamma", "C", ax=ax) is ax
    assert ticks(ax.xaxis) == ["0.125", "0.5", "2"] and ticks(ax.yaxis) == ["1", "10"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gamma", "C")
    expected = [
        [
            max(s for p, s in zip(made.points, made.mean_scores) if (p["gamma"], p["C"]) == (g, C))
            for g in (0.125, 0.5, 2)
        ]
        for C in (1, 10)
    ]
    assert_array_equal(picture(ax), expected)
    assert [text.get_text() for text in ax.texts] == [f"{score:.3f}" for score in np.ravel(expected)]
    (frame,) = ax.patches
    assert frame.get_xy() == (-0.5, -0.5), "the best point: gamma 0.125, C 1"
    bar = ax.figure.axes[1]
    assert bar.get_ylabel() == "f1 macro, mean over folds"


def test_cells_that_a_grid_leaves_out_are_empty(ax):
    made = selection(points=[{"C": 1, "k": "a"}, {"C": 2, "k": "b"}], mean_scores=[0.5, 0.75], best_index=1)
    plotting.grid(made, ax=ax)
    assert_array_equal(picture(ax), [[0.5, np.nan], [np.nan, 0.75]])
    assert ticks(ax.yaxis) == ["a", "b"] and len(ax.texts) == 2


def test_one_name_is_enough_where_two_change(ax):
    made = mdlearn.select(
        "svm", *mdlearn.datasets.xor(40, random_state=0), {"C": [1, 10], "gamma": [0.1, 1, 9]}, kernel="rbf", cv=2
    )
    plotting.grid(made, y="C", ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gamma", "C") and picture(ax).shape == (2, 3)
    assert picture(ax).max() == made.best_score


def test_large_grids_have_no_numbers(ax):
    points = [{"a": i, "b": j} for i in range(20) for j in range(20)]
    plotting.grid(selection(points=points, mean_scores=np.arange(400.0), best_index=399), ax=ax)
    assert not ax.texts and picture(ax).shape == (20, 20)


def test_errors_are_one_clear_sentence(ax):
    for given, names, error, message in [
        (object(), {}, TypeError, "'object' object has no scores"),
        (selection(), {}, ValueError, "the grid changes C, gamma, shift; name two"),
        (selection(), {"x": "gama", "y": "C"}, ValueError, "no hyper-parameter 'gama' .*; did you mean 'gamma'[?]$"),
        (selection(), {"x": "C", "y": "C"}, ValueError, "both 'C'"),
        (selection(points=[{"C": 1}, {"C": 2}], mean_scores=[1, 2]), {}, ValueError, "the grid changes C; name two"),
    ]:
        with pytest.raises(error, match=message) as caught:
            plotting.grid(given, **names, ax=ax)
        assert "\n" not in str(caught.value) and not ax.images


def is_of_the_palette(colour):
    """One of the palette, or a grey."""
    red, green, blue = to_rgb(colour)
    return red == green == blue or any(to_rgb(one) == (red, green, blue) for one in plotting.COLOURS)


DRAWING = set("plot scatter contour contourf fill_between bar barh hist step axhline axvline".split())


@pytest.mark.parametrize("script", sorted((ROOT / "docs" / "gallery").glob("plot_*.py")), ids=lambda path: path.stem)
def test_pictures_of_the_gallery(script):
    """What they draw themselves has a colour of the palette, and legends stand beside the axes or below."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    named = {text for text in texts if len(text) > 1 and text != "none" and is_color_like(text)}
    assert {text for text in named if not is_of_the_palette(text)} == set()
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    for call in calls:
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert "cmap" not in given, ast.unparse(call)
        if call.func.attr in DRAWING:
            assert given.keys() & {"color", "colors"}, ast.unparse(call)
        if call.func.attr == "legend":
            assert "outside" in given["loc"] or "bbox_to_anchor" in given, ast.unparse(call)


def test_pictures_of_the_library_have_one_palette(ax):
    X, y = mdlearn.datasets.two_gaussians(40, random_state=0)
    three = np.where(X[:, 0] > 1.0, 2, y)
    draws = [
        lambda: plotting.cumulative_margins([[float(i), 9.0] for i in range(12)], ax=ax),
        lambda: plotting.gap_history([mdlearn.fit("svm", X, y, C=C) for C in (1.0, 2.0)], ax=ax),
        lambda: plotting.gap_history([mdlearn.fit("svm", X, y, C=C) for C in (1.0, 2.0)], value="bounds", ax=ax),
        lambda: plotting.path(mdlearn.fit_path("svm", X, y, {"C": [1.0, 10.0]}), value="coefficients", ax=ax),
        lambda: plotting.decision_boundary(mdlearn.fit("svm", X, three), X, three, ax=ax),
    ]
    for draw in draws:
        ax.clear()
        draw()
        assert len(ax.lines) > 1
        seen = {line.get_color() for line in ax.lines if line.get_linestyle() != "None"}
        seen |= {line.get_markeredgecolor() for line in ax.lines if line.get_marker() != "None"}
        assert {colour for colour in seen if not is_of_the_palette(colour)} == set()
    assert len(set(plotting.COLOURS)) == 7


DEFICIENCIES = {
    "none": np.eye(3),
    "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Linear RGB as it is seen without one kind of cones (Machado, Oliveira and Fernandes 2009, severity 1)."""


def as_seen(colours, kind):
    """Coordinates in CIELAB of what is seen of colours, rows of sRGB."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(DEFICIENCIES[kind]), 0.0, 1.0)
    xyz = seen @ np.transpose([[0.4339, 0.3763, 0.1898], [0.2126, 0.7152, 0.0722], [0.0178, 0.1095, 0.8727]])
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116).T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", DEFICIENCIES)
def test_colours_differ_for_everybody(kind):
    """By 12 units of CIELAB at least; 2 are just noticeable side by side."""
    lab = as_seen(np.array([to_rgb(colour) for colour in plotting.COLOURS]), kind)
    apart = np.linalg.norm(lab[:, None] - lab, axis=2)
    assert apart[np.triu_indices(len(lab), 1)].min() > 12


@pytest.mark.parametrize("kind", DEFICIENCIES)
def test_better_scores_are_lighter_for_everybody(ax, kind):
    points = [{"a": i, "b": j} for i in range(2) for j in range(10)]
    plotting.grid(selection(points=points, mean_scores=np.arange(20.0), best_index=19), ax=ax)
    (image,) = ax.images
    lightness = as_seen(image.cmap(image.norm(np.arange(20.0)))[:, :3], kind)[:, 0]
    assert np.diff(lightness).min() > 2
