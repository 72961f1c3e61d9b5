"""The gap of fits against seconds and iterations."""

from types import SimpleNamespace

import numpy as np
import plot_cases
import pytest
from numpy.testing import assert_array_equal
from plot_cases import entries

import mdlearn
from mdlearn import plotting
from mdlearn.plotting.progress import SMALLEST_DRAWN_GAP

pytestmark = pytest.mark.extras

ax = plot_cases.ax


def fitted(k=2, **options):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 3))
    return mdlearn.fit("ldm", X, (X[:, 0] > 0).astype(int) if k == 2 else X.argmax(axis=1), **options)


def curves(ax):
    return [line for line in ax.lines if line.get_drawstyle() == "steps-post"]


@pytest.mark.parametrize("against, attribute", [("seconds", "elapsed"), ("iterations", "iteration")])
def test_a_line_is_the_history(ax, against, attribute):
    model = fitted(solver="interior")
    assert plotting.gap_history(model, against=against, ax=ax) is ax
    (line,) = curves(ax)
    states = [state for state in model.history if np.isfinite(state.gap)]
    assert_array_equal(line.get_xdata(), [getattr(state, attribute) for state in states])
    assert_array_equal(line.get_ydata(), [max(state.gap, SMALLEST_DRAWN_GAP) for state in states])
    assert ax.get_yscale() == "log" and ax.get_legend() is None
    assert ("[s]" in ax.get_xlabel()) == (against == "seconds")
    assert any(set(line.get_ydata()) == {model.certificate.tol} for line in ax.lines), "tol is marked"


def test_every_problem_has_a_line_and_every_model_one_entry(ax):
    models = [fitted(3, solver="interior"), fitted(3, solver="cd")]
    plotting.gap_history(models, ax=ax)
    assert entries(ax) == ["ldm, linear, interior", "ldm, linear, cd"]
    lines = curves(ax)
    assert len(lines) == 6
    assert len({line.get_color() for line in lines[:3]}) == 1 != len({line.get_color() for line in lines})
    assert len({line.get_marker() for line in lines}) == 2, "markers tell models apart in grey"
    for j, line in enumerate(lines[:3]):
        assert line.get_xdata()[-1] == max(state.elapsed for state in models[0].history if state.problem == j)


def test_names(ax):
    models = [fitted(), fitted(), fitted(kernel="rbf")]
    plotting.gap_history(models, ax=ax)
    solver = models[0].solver
    assert entries(ax) == [f"ldm, linear, {solver} 1", f"ldm, linear, {solver} 2", f"ldm, rbf, {models[2].solver}"]
    plotting.gap_history({"a": models[0], "b": models[2]}, ax=ax)
    assert entries(ax)[-2:] == ["a", "b"]


def test_no_gap_is_lost_on_logarithmic_axes(ax):
    from mdlearn.forms.proof import State

    states = [State(1, 3.0, -np.inf, np.inf, 0.1, 0), State(2, 2.0, 1.0, 0.5, 0.2, 0), State(3, 2.0, 2.0, 0.0, 0.3, 0)]
    plotting.gap_history(SimpleNamespace(history=states), ax=ax)
    ax.set_xscale("log")
    (line,) = curves(ax)
    assert_array_equal(line.get_xydata(), [[0.2, 0.5], [0.3, SMALLEST_DRAWN_GAP]])
    ax.figure.draw_without_rendering()
    assert np.isfinite(ax.transData.transform(line.get_xydata())).all()


def test_objective_and_bound(ax):
    models = {"interior": fitted(solver="interior"), "cd": fitted(solver="cd")}
    plotting.gap_history(models, value="bounds", against="iterations", ax=ax)
    assert entries(ax) == [f"{name}: {what}" for name in models for what in ("objective", "lower bound")]
    lines = curves(ax)
    for (above, below), model in zip((lines[:2], lines[2:]), models.values()):
        assert above.get_color() == below.get_color() and above.get_linestyle() != below.get_linestyle()
        assert (np.diff(above.get_ydata()) <= 0).all() and (np.diff(below.get_ydata()) >= 0).all()
        assert (below.get_ydata() <= above.get_ydata()).all()
        assert above.get_ydata()[-1] == pytest.approx(model.certificate.objective, rel=1e-5)
        assert below.get_ydata()[-1] == pytest.approx(model.certificate.lower_bound, rel=1e-5)
    assert ax.get_ylabel() == "objective and lower bound"


def test_bounds_of_several_problems_and_far_beginnings(ax):
    from mdlearn.forms.proof import State

    plotting.gap_history(fitted(3), value="bounds", ax=ax)
    assert len(curves(ax)) == 6 and len(entries(ax)) == 2
    states = [State(1, 1e6, 0.0, 1e6, 0.1, 0), State(2, 2.0, 1.0, 0.5, 0.2, 0)]
    plotting.gap_history(SimpleNamespace(history=states), value="bounds", ax=ax)
    assert ax.get_yscale() == "symlog"


def test_errors_are_one_clear_sentence(ax):
    for models, options, error, message in [
        ([], {}, ValueError, "nothing to plot"),
        (fitted(), {"against": "hours"}, ValueError, "against='hours' is unknown; give 'seconds' or 'iterations'"),
        (fitted(), {"value": "bound"}, ValueError, "give 'gap' or 'bounds'; did you mean 'bounds'[?]$"),
        (fitted(), {"against": "second"}, ValueError, "'seconds' or 'iterations'; did you mean 'seconds'[?]$"),
        (fitted(), {"labels": ["a", "b"]}, ValueError, "does not name 1 curves"),
        ([object()], {}, TypeError, "'object' object has no history"),
        (SimpleNamespace(history=[]), {}, ValueError, "knows no gap"),
    ]:
        with pytest.raises(error, match=message) as caught:
            plotting.gap_history(models, ax=ax, **options)
        assert "\n" not in str(caught.value) and not ax.lines
