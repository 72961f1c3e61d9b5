"""Decision boundaries: regions, lines, rows, rings, scales."""

import numpy as np
import plot_cases
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plot_cases import covers, entries, figures, named

import mdlearn
from mdlearn import plotting

ax = plot_cases.ax
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.extras

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 2))
Y = np.where(X[:, 0] + X[:, 1] > 0, "high", "low")


def regions(ax):
    """Index of the tint of every cell, and the cells' centres."""
    (mesh,) = ax.collections[:1]
    edges = mesh.get_coordinates()
    centres = (edges[:-1, :-1] + edges[1:, 1:]) / 2
    return np.asarray(mesh.get_array()).reshape(centres.shape[:2]), centres


def contours(ax):
    """Vertices of every contour line, with the level."""
    return [(c.levels[0], path.vertices) for c in ax.collections[1:] if hasattr(c, "levels") for path in c.get_paths()]


def test_regions_and_lines_are_those_of_the_model(ax):
    model = mdlearn.fit("svm", X, Y, kernel="rbf", C=10)
    assert plotting.decision_boundary(model, X, Y, resolution=80, ax=ax) is ax
    tints, centres = regions(ax)
    assert_array_equal(model.classes_[tints.astype(int).ravel()], model.predict(centres.reshape(-1, 2)))
    levels = {level for level, _ in contours(ax)}
    assert levels == {-1.0, 0.0, 1.0}
    for level, points in contours(ax):
        assert_allclose(model.decision_function(points), level, atol=0.05)
    assert entries(ax) == ["high", "low", "support vectors", "f = 0", "f = -1, f = 1"]
    overlaps, inside = covers(ax)
    assert inside and not overlaps


def test_every_line_has_its_value_once(ax):
    model = mdlearn.fit("svm", X, Y, kernel="rbf", C=10)
    plotting.decision_boundary(model, X, Y, ax=ax)
    written = {text.get_text(): np.array(text.get_position()) for text in ax.texts}
    assert sorted(written) == ["f = -1", "f = 0", "f = 1"] and len(ax.texts) == 3
    for text, place in written.items():
        level = float(text.removeprefix("f = "))
        assert_allclose(model.decision_function([place]), level, atol=0.3)


def test_lines_between_several_classes_are_named(ax):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    labels = (rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0.3)
    plotting.decision_boundary(mdlearn.fit("svm", rows, labels), rows, labels, support=False, ax=ax)
    assert entries(ax)[-1] == "equal scores" and not ax.texts


def test_rows_and_rings(ax):
    model = mdlearn.fit("svm", X, Y, C=10, solver="interior")
    exact = mdlearn.fit("svm", X, Y, C=10, solver="cd")
    plotting.decision_boundary(model, X, Y, ax=ax)
    lines = named(ax)
    for label in ("high", "low"):
        assert_array_equal(lines[label].get_xydata(), X[Y == label])
    assert_array_equal(lines["support vectors"].get_xydata(), X[exact.support_])
    low, high = ax.get_xlim(), ax.get_ylim()
    assert low[0] < X[:, 0].min() and high[1] > X[:, 1].max()
    shapes = [(line.get_marker(), line.get_markerfacecolor()) for line in lines.values()]
    assert len(set(shapes)) == 3 and shapes[1][1] == "white" != shapes[0][1]


def test_rings_need_the_rows_of_the_fit(ax):
    model = mdlearn.fit("svm", X, Y)
    plotting.decision_boundary(model, X[:20], Y[:20], ax=ax)
    assert "support vectors" not in entries(ax)
    with pytest.raises(ValueError, match="X has 20 rows, but the model was fitted on 60; give those"):
        plotting.decision_boundary(model, X[:20], Y[:20], support=True, ax=ax)


def test_rings_around_nearly_everything_only_when_asked_for(ax):
    model = mdlearn.fit("lssvm", X, Y)
    assert 2 * model.support_.shape[0] > 60
    plotting.decision_boundary(model, X, Y, ax=ax)
    assert "support vectors" not in entries(ax)
    plotting.decision_boundary(model, X, Y, support=True, ax=ax)
    assert "support vectors" in entries(ax)


@pytest.mark.parametrize("options", [{}, {"multiclass": "ovo"}, {"kernel": "rbf"}])
def test_several_classes(ax, options):
    y = (X[:, 0] > -0.5).astype(int) + (X[:, 1] > 0.5)
    model = mdlearn.fit("svm", X, y, **options)
    plotting.decision_boundary(model, X, y, resolution=60, ax=ax)
    tints, centres = regions(ax)
    assert_array_equal(model.classes_[tints.astype(int).ravel()], model.predict(centres.reshape(-1, 2)))
    if options != {"multiclass": "ovo"}:  # votes jump
        for level, points in contours(ax):
            F = np.sort(model.decision_function(points), axis=1)
            assert level == 0 and np.median(F[:, -1] - F[:, -2]) < 0.05
    assert entries(ax)[:3] == ["0", "1", "2"]


def test_names_of_a_frame_become_labels(ax):
    frame = pd.DataFrame(X, columns=["length [cm]", "width [cm]"])
    model = mdlearn.fit("svm", frame, Y)
    plotting.decision_boundary(model, frame, Y, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length [cm]", "width [cm]")
    plotting.decision_boundary(model, X, names=["a", "b"], ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")


def test_the_grid_follows_logarithmic_axes(ax):
    ax.set_xscale("log")
    Z = np.exp(3 * X)
    model = mdlearn.fit("svm", Z, Y, kernel="rbf")
    plotting.decision_boundary(model, Z, Y, resolution=50, ax=ax)
    tints, centres = regions(ax)
    assert tints.shape == (50, 50)
    steps = np.diff(np.log(centres[0, :, 0]))
    assert_allclose(steps, steps[0], rtol=0.2)
    with pytest.raises(ValueError, match="X has the value -1, which has no place on this axis"):
        plotting.decision_boundary(model, [[-1.0, 0.0]], ax=ax)


def test_one_region_warns_of_nothing(ax):
    model = mdlearn.fit("svm", X, Y, C=0)
    plotting.decision_boundary(model, X, ax=ax)
    ax.figure.draw_without_rendering()
    assert ax.get_legend() is None


def test_many_rows_are_thinned_class_by_class(ax):
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(90_000, 2))
    y = np.where(np.arange(90_000) < 10, "rare", "common")
    model = mdlearn.fit("svm", X, np.where(Y == "high", "rare", "common"))
    plotting.decision_boundary(model, Z, y, ax=ax)
    lines = named(ax)
    assert 10_000 < len(lines["common"].get_xdata()) <= 20_001 and 1 <= len(lines["rare"].get_xdata()) <= 10


def test_other_classifiers_will_do(ax):
    svm = pytest.importorskip("sklearn.svm")
    model = svm.SVC().fit(X, Y)
    plotting.decision_boundary(model, X, Y, support=True, ax=ax)
    assert_array_equal(named(ax)["support vectors"].get_xydata(), X[model.support_])


def test_errors_are_one_clear_sentence():
    model = mdlearn.fit("svm", X, Y)
    wide = mdlearn.fit("svm", np.eye(3), [0, 1, 1])
    for arguments, options, error, message in [
        ((wide, np.eye(3)), {}, ValueError, "the model has 3 features; a boundary can be drawn for 2"),
        ((object(), X), {}, TypeError, "is no classifier"),
        ((model, X[:, :1]), {}, ValueError, r"X has shape \(60, 1\)"),
        ((model, X[:0]), {}, ValueError, "give rows of two finite numbers"),
        ((model, X * np.nan), {}, ValueError, "give rows of two finite numbers"),
        ((model, X, Y[:5]), {}, ValueError, "X has 60 rows but y has 5 labels"),
        ((model, X, np.full(60, "no")), {}, ValueError, "y holds the label 'no'"),
        ((model, X), {"names": "ab"}, ValueError, "names='ab' does not name two axes"),
        ((model, X), {"resolution": 1}, ValueError, "resolution needs to be at least 2; got 1"),
    ]:
        ax = figures.Figure().add_subplot()
        with pytest.raises(error, match=message) as caught:
            plotting.decision_boundary(*arguments, ax=ax, **options)
        assert "\n" not in str(caught.value) and not ax.collections and not ax.lines
