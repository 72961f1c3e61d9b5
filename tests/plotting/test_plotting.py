"""The cumulative margin plot: what is drawn, where the legend stands, what is refused."""

import io
import re
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mdlearn import plotting

figures = pytest.importorskip("matplotlib.figure", reason="plots need matplotlib")

pytestmark = pytest.mark.extras


@pytest.fixture
def ax():
    """Axes without pyplot: nothing to close, no window system needed."""
    return figures.Figure(layout="constrained").add_subplot()


@pytest.fixture
def pyplot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_backend()
    pyplot.switch_backend("agg")
    yield pyplot
    pyplot.close("all")
    pyplot.switch_backend(before)


class Line:
    """A model with f(x) = 2 x, as far as the plot is concerned."""

    def margins(self, X, y, normalized=False):
        return np.asarray(y) * np.asarray(X)[:, 0] * (1.0 if normalized else 2.0)


X = np.array([[1.0], [-2.0], [0.5], [3.0]])
Y = np.array([1, -1, -1, 1])


def curves(ax):
    """The drawn curves, without the vertical line at 0."""
    return [line for line in ax.lines if line.get_drawstyle() == "steps-post"]


def test_curve_is_the_cumulative_share(ax):
    assert plotting.cumulative_margins([0.5, -1.0, 0.5, 2.0], ax=ax) is ax
    (line,) = curves(ax)
    assert_array_equal(line.get_xdata(), [-1, -1, 0.5, 2])
    assert_array_equal(line.get_ydata(), [0, 0.25, 0.75, 1])
    assert ax.get_xlabel() == "margin" and ax.get_ylabel()
    assert ax.get_legend() is None


def test_a_thin_line_marks_margin_zero(ax):
    plotting.cumulative_margins([1.0, 2.0], ax=ax)
    (mark,) = [line for line in ax.lines if line not in curves(ax)]
    assert_array_equal(mark.get_xdata(), [0, 0])
    assert mark.get_linewidth() < curves(ax)[0].get_linewidth()
    low, high = ax.get_xlim()
    assert low < 0 < high


def test_weights_draw_the_same_curve_as_repeated_rows(ax):
    z, counts = np.array([0.3, -0.2, 1.0, -5.0]), [2, 1, 3, 0]
    plotting.cumulative_margins([z], sample_weight=counts, ax=ax)
    plotting.cumulative_margins([np.repeat(z, counts)], ax=ax)
    weighted, repeated = curves(ax)
    assert_allclose(weighted.get_xydata(), repeated.get_xydata())


@pytest.mark.parametrize("normalized, scale, label", [(False, 2.0, "margin"), (True, 1.0, "normalised margin")])
def test_a_model_gives_its_margins(ax, normalized, scale, label):
    plotting.cumulative_margins(Line(), X, Y, normalized=normalized, ax=ax)
    assert_array_equal(curves(ax)[0].get_xdata()[1:], scale * np.array([-0.5, 1, 2, 3]))
    assert ax.get_xlabel() == label


def test_models_and_arrays_mix_and_are_named(ax):
    plotting.cumulative_margins([Line(), np.array([1.0, 2.0])], X, Y, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["model 1", "margins 2"]


@pytest.mark.parametrize(
    "what, labels",
    [({"a": [1.0, 2.0], "b": [0.0]}, None), ([[1.0, 2.0], [0.0]], ["a", "b"])],
    ids=["mapping", "labels"],
)
def test_legend_has_the_given_names(ax, what, labels):
    plotting.cumulative_margins(what, labels=labels, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert [line.get_label() for line in curves(ax)] == ["a", "b"]


def luminance(colour):
    from matplotlib.colors import to_rgb

    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return np.dot([0.2126, 0.7152, 0.0722], linear)


def test_curves_differ_in_colour_and_in_grey(ax):
    plotting.cumulative_margins([[float(i), i + 1.0] for i in range(35)], ax=ax)
    ax.figure.set_size_inches(6, 12)
    text = io.StringIO()
    ax.figure.savefig(text, format="svg")
    # Solid black is both a curve and the frame; the line at margin 0 adds one style of its own.
    path = re.compile(r"fill: none; (?:stroke-dasharray: ([^;]*); stroke-dashoffset: [^;]*; )?stroke: (#\w+)")
    styles = set(path.findall(text.getvalue()))
    assert len(styles) == 35 + 1
    assert len({dash for dash, _ in styles}) == 5, "neighbouring curves must differ without colour"
    # WCAG asks 3:1 of graphics; the two palest of the palette come sixth and seventh.
    assert all(1.05 / (luminance(line.get_color()) + 0.05) >= 3 for line in curves(ax)[:4])


def drawn_boxes(ax):
    ax.figure.draw_without_rendering()
    return ax.get_legend().get_window_extent(), ax.get_window_extent(), ax.figure.bbox


def test_legend_stands_beside_the_axes_and_inside_the_figure(ax):
    plotting.cumulative_margins({"a long name for a model": [0.0, 1.0], "b": [0.5]}, ax=ax)
    legend, axes, figure = drawn_boxes(ax)
    assert legend.x0 >= axes.x1
    assert legend.x1 <= figure.x1 and legend.y0 >= figure.y0 and legend.y1 <= figure.y1


@pytest.mark.parametrize("size", [(7, 4), (3, 3), (3, 5), (12, 3)])
@pytest.mark.parametrize("names", [("a", "b"), ("a long name of a model", "b"), ("x" * 40, "y" * 40)])
def test_without_a_layout_engine_axes_make_room_for_the_legend(size, names):
    ax = figures.Figure(figsize=size).add_subplot()
    z = np.linspace(-1, 1, 50) ** 3
    plotting.cumulative_margins({names[0]: z, names[1]: z + 0.2}, ax=ax)
    legend, axes, figure = drawn_boxes(ax)
    assert not axes.overlaps(legend)
    assert figure.x0 <= legend.x0 and legend.x1 <= figure.x1 and figure.y0 <= legend.y0 and legend.y1 <= figure.y1
    assert axes.width > 0.3 * figure.width and axes.height > 0.3 * figure.height


def test_curves_of_different_scale_share_a_normalised_axis(ax):
    z = np.array([-1.0, 0.5, 1.0, 3.5])
    plotting.cumulative_margins([z, 40.0 * z], sample_weight=[2, 1, 1, 1], ax=ax)
    one, other = (line.get_xdata()[1:] for line in curves(ax))
    assert_allclose(one, other)
    assert_allclose(one, z / (np.abs(z) @ [2, 1, 1, 1] / 5))
    assert ax.get_xlabel() == "margin / mean absolute margin"


@pytest.mark.parametrize("normalized", [None, False])
def test_curves_of_one_scale_are_drawn_as_they_are(ax, normalized):
    z = np.array([-1.0, 0.5, 1.0, 3.5])
    factor = 1.5 if normalized is None else 40.0
    plotting.cumulative_margins([z, factor * z], normalized=normalized, ax=ax)
    assert_array_equal(curves(ax)[1].get_xdata()[1:], factor * z)
    assert ax.get_xlabel() == "margin"


def test_margins_of_zero_have_no_scale(ax):
    plotting.cumulative_margins([np.zeros(3), np.ones(3), np.full(3, 9.0)], ax=ax)
    assert [line.get_xdata()[-1] for line in curves(ax)] == [0.0, 1.0, 1.0]


def test_without_axes_a_new_pyplot_figure_is_made(pyplot, tmp_path):
    ax = plotting.cumulative_margins([0.0, 1.0], labels=["only"])
    assert ax.figure is pyplot.gcf() and ax.get_legend() is not None
    ax.figure.savefig(tmp_path / "margins.png")
    assert (tmp_path / "margins.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments, options, error, message",
    [
        ([[]], {}, ValueError, "nothing to plot"),
        ([{}], {}, ValueError, "nothing to plot"),
        ([3], {}, TypeError, "'int' object is neither a Model nor an array of margins"),
        ([np.zeros((2, 2))], {}, ValueError, "the array of margins has shape (2, 2)"),
        ([[0.0, np.nan]], {}, ValueError, "contains NaN"),
        ([[0.0, 1.0]], {"sample_weight": [1]}, ValueError, "sample_weight has shape (1,)"),
        ([Line()], {}, ValueError, "models need X and y"),
        ([[1.0], X, Y], {}, ValueError, "X and y are for models"),
        ([[[1.0], [2.0]]], {"labels": ["a"]}, ValueError, "labels=['a'] does not name 2 curves"),
        ([[[1.0], [2.0]]], {"labels": "ab"}, ValueError, "labels='ab' does not name 2 curves"),
        ([{"a": [1.0]}], {"labels": ["a"]}, ValueError, "labels were given beside a mapping"),
    ],
)
def test_errors_are_one_clear_sentence(ax, arguments, options, error, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        plotting.cumulative_margins(*arguments, ax=ax, **options)
    assert "\n" not in str(caught.value)
    assert not ax.lines, "nothing may be drawn before the arguments are checked"


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=re.escape("mdlearn[plot]")):
        plotting.cumulative_margins([0.0, 1.0])


def test_plotting_imports_no_matplotlib():
    code = "import sys, mdlearn.plotting; print('matplotlib' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"


# The demo


@pytest.fixture
def demo():
    pytest.importorskip("sklearn", reason="the demo needs scikit-learn")
    from mdlearn.experiments import demo

    return demo


def test_demo_prints_a_certified_table_and_draws_the_plot(demo, monkeypatch, tmp_path, capsys):
    tasks = [task for task in demo.TASKS if task.data == "breast_cancer"]
    monkeypatch.setattr(demo, "TASKS", tuple(tasks))
    assert demo.run_demo(tmp_path) == 0
    shown, progress = capsys.readouterr()
    path = tmp_path / demo.PICTURE
    assert f"Cumulative margins: {path.resolve()}" in shown.splitlines()
    assert path.read_bytes().startswith(b"\x89PNG")
    head, *lines = shown.splitlines()[: len(tasks) + 1]
    for title in ("test acc.", "min", "mean", "var", "objective", "gap", "engine", "seconds"):
        assert title in head
    for task, line in zip(tasks, lines):
        assert line.startswith("breast_cancer") and task.name in line and f"{task.name} on breast_cancer" in progress
        cells = {title: line[: head.index(title) + len(title)].split()[-1] for title in ("test acc.", "gap")}
        assert float(cells["test acc."]) > 0.94
        assert 0 <= float(cells["gap"]) <= 1e-6
    variances = [float(line[: head.index("var") + 3].split()[-1]) for line in lines]
    assert variances[1] < variances[0] and variances[3] < variances[2], "ldm is there to lower the margin variance"


def test_demo_split_scales_on_the_training_half_only(demo):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(5, 2, 31), np.full(31, 7.0), np.arange(31)])
    halves = demo.demo_halves(X, np.arange(31))
    assert len(halves.y) == 15 and sorted([*halves.y, *halves.y_test]) == list(range(31))
    assert_array_equal(halves.X.min(0), [0, 0, 0])
    assert_allclose(halves.X.max(0), [1, 0, 1])
    low, high = X[halves.y, 0].min(), X[halves.y, 0].max()
    assert_allclose(halves.X_test[:, 0], (X[halves.y_test, 0] - low) / (high - low))
    assert_array_equal(demo.demo_halves(X, np.arange(31)).y, halves.y)


@pytest.mark.parametrize("package", ["sklearn", "matplotlib.figure"])
def test_demo_names_the_extra_when_a_package_is_missing(demo, monkeypatch, tmp_path, capsys, package):
    monkeypatch.setitem(sys.modules, package, None)
    assert demo.run_demo(tmp_path) == 1
    assert 'pip install "mdlearn[demo]"' in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_demo_refuses_a_missing_directory_before_any_work(demo, tmp_path, capsys):
    assert demo.run_demo(tmp_path / "nowhere") == 1
    shown, error = capsys.readouterr()
    assert "there is no folder" in error and not shown
