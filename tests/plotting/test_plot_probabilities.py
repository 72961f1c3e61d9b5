"""Cumulative signed probabilities, long margin curves, and where legends go."""

import numpy as np
import plot_cases
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plot_cases import covers, entries, figures

import mdlearn
from mdlearn import plotting
from mdlearn.margins import cumulative_curve

pytestmark = pytest.mark.extras

ax = plot_cases.ax  # pytest finds fixtures by the names of the module


class Sure:
    """P(b) = x for labels a and b."""

    classes_ = np.array(["a", "b"])

    def predict_proba(self, X):
        x = np.asarray(X)[:, 0]
        return np.column_stack([1 - x, x])


X = np.array([[0.9], [0.2], [0.6], [0.6]])
Y = np.array(["b", "b", "b", "a"])


def steps(ax):
    return [line for line in ax.lines if line.get_drawstyle() == "steps-post"]


def test_a_wrong_label_has_the_negative_of_its_probability(ax):
    assert plotting.cumulative_probabilities(Sure(), X, Y, ax=ax) is ax
    (line,) = steps(ax)
    assert_allclose(line.get_xdata(), [-0.8, -0.8, -0.6, 0.6, 0.9])
    assert_allclose(line.get_ydata(), [0, 0.25, 0.5, 0.75, 1])
    assert ax.get_legend() is None and "probability" in ax.get_xlabel()


@pytest.mark.parametrize("objective", ["l2lr", "mdlm", "mmlr"])
def test_height_at_zero_is_the_share_of_wrong_rows(ax, objective):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.array([3, 1, 2])[X.argmax(axis=1)]
    y[:6] = 1
    model = mdlearn.fit(objective, X, y, lam=1e-3) if objective != "mdlm" else mdlearn.fit(objective, X, y)
    plotting.cumulative_probabilities({"it": model}, X, y, ax=ax)
    (line,) = steps(ax)
    below = line.get_ydata()[line.get_xdata() < 0].max(initial=0)
    assert below == pytest.approx(1 - model.score(X, y))
    assert np.abs(line.get_xdata()).min() >= 1 / 3 - 1e-12 and np.abs(line.get_xdata()).max() <= 1
    assert entries(ax) == ["it"]


def test_weights_draw_the_same_curve_as_repeated_rows(ax):
    counts = [2, 0, 3, 1]
    plotting.cumulative_probabilities(Sure(), X, Y, sample_weight=counts, ax=ax)
    plotting.cumulative_probabilities(Sure(), np.repeat(X, counts, axis=0), np.repeat(Y, counts), ax=ax)
    one, two = steps(ax)
    assert_allclose(one.get_xydata(), two.get_xydata())


@pytest.mark.parametrize(
    "models, y, error, message",
    [
        ([], Y, ValueError, "nothing to plot"),
        (3, Y, TypeError, "neither a Model nor a sequence of models"),
        ([Sure(), object()], Y, TypeError, "'object' object has no predict_proba"),
        (Sure(), ["a", "b", "c", "a"], ValueError, "y holds the label 'c'"),
        (Sure(), ["a", "b"], ValueError, "X has 4 rows but y has 2 labels"),
        (Sure(), [[1]], ValueError, "y has 2 dimension"),
    ],
)
def test_errors_are_one_clear_sentence(ax, models, y, error, message):
    with pytest.raises(error, match=message.replace("(", r"\(")) as caught:
        plotting.cumulative_probabilities(models, X, y, ax=ax)
    assert "\n" not in str(caught.value) and not ax.lines


def test_a_model_without_probabilities_is_named(ax):
    model = mdlearn.fit("svm", [[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match="the model of 'svm' has no predict_proba; plot its margins"):
        plotting.cumulative_probabilities([model], [[0.0], [1.0]], [0, 1], ax=ax)


def test_a_long_curve_is_thinned_below_what_can_be_seen(ax):
    rng = np.random.default_rng(1)
    z = np.concatenate([rng.normal(size=100_000), rng.normal(30, 0.01, size=100_000), [-50.0]])
    plotting.cumulative_margins(z, ax=ax)
    (line,) = steps(ax)
    drawn = line.get_xydata()[1:]
    assert 1000 < drawn.shape[0] < 12_000
    values, share = cumulative_curve(z)
    assert_array_equal(drawn[[0, -1]], [[values[0], share[0]], [values[-1], share[-1]]])
    # Every point of the whole curve is near the drawn steps, in height or along the axis.
    below = drawn[np.searchsorted(drawn[:, 0], values, side="right") - 1, 1]
    above = drawn[np.searchsorted(drawn[:, 0], values, side="left"), 0] - values
    assert (np.minimum(share - below, above / (values[-1] - values[0])) <= 1 / 2500).all()
    assert set(map(tuple, drawn)) <= set(zip(values, share))


NAMES = [f"a model whose name is a long sentence, number {i}" for i in range(8)]


@pytest.mark.parametrize("size", [(7, 4), (10, 4), (3.2, 7), (3, 9)])
def test_a_legend_stands_off_the_data_and_within_the_figure(size):
    ax = figures.Figure(figsize=size, layout="constrained").add_subplot()
    few = NAMES if size[0] > 5 else NAMES[:3]
    plotting.cumulative_margins({name: [0.0, i + 1.0] for i, name in enumerate(few)}, ax=ax)
    overlaps, inside = covers(ax)
    assert not overlaps and inside
    assert entries(ax) == few
    assert ax.get_window_extent().width > 0.3 * ax.figure.bbox.width


@pytest.mark.parametrize("size", [(7, 4), (3, 9)])
@pytest.mark.parametrize("draw", ["gap_history", "path"])
def test_legends_of_histories_and_paths_cover_nothing(draw, size):
    X, y = mdlearn.datasets.two_gaussians(80, random_state=0)
    ax = figures.Figure(figsize=size, layout="constrained").add_subplot()
    if draw == "gap_history":
        plotting.gap_history({name: mdlearn.fit("svm", X, y) for name in NAMES[:3]}, ax=ax)
    else:
        fits = mdlearn.fit_path("ldm", X, y, {"C": [0.1, 1.0, 10.0], "lambda1": [0.0, 10.0, 100.0]})
        plotting.path(fits, "C", X=X, y=y, ax=ax)
    overlaps, inside = covers(ax)
    assert not overlaps and inside


def test_tiny_axes_keep_their_data():
    ax = figures.Figure(figsize=(2.6, 2), layout="constrained").add_subplot()
    plotting.cumulative_margins({name[-8:]: [0.0, i + 1.0] for i, name in enumerate(NAMES)}, ax=ax)
    overlaps, inside = covers(ax)
    assert inside and not overlaps, "the legend covers no curve"
    assert ax.get_window_extent().width > 0.5 * ax.figure.bbox.width
    assert ax.get_window_extent().height > 0.45 * ax.figure.bbox.height


def test_plots_leave_the_style_of_others_alone(ax):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plotting.cumulative_probabilities([Sure(), Sure()], X, Y, ax=ax)
    assert dict(matplotlib.rcParams) == before
