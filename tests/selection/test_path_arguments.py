"""Grids, their order and their errors; limits, callbacks and progress of a whole path; what points share."""

from __future__ import annotations

import pickle
import re
import signal
import warnings
from typing import ClassVar

import numpy as np
import pytest
from path_cases import RBF, path, rows
from threading_cases import interrupted

import mdlearn
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.objectives.base import Objective, Parameter, Terms
from mdlearn.plugins.registry import registry
from mdlearn.selection.paths.grid import GridRoute, equal_grid_points
from mdlearn.solvers.dual_hessian import eigen as decomposed

GRID = {"C": [1.0, 5.0], "lambda1": [0.0, 2.0, 30.0]}


def test_points_come_in_the_order_of_the_grid():
    X, y, _ = rows()
    found = path("ldm", X, y, GRID)
    assert found.points == tuple({"C": C, "lambda1": v} for C in (1.0, 5.0) for v in (0.0, 2.0, 30.0))
    shuffled = [found.points[i] for i in (3, 0, 5, 4, 1, 2)]
    other = path("ldm", X, y, shuffled)
    assert other.points == tuple(shuffled)
    assert np.allclose(other.objective, found.objective[[3, 0, 5, 4, 1, 2]], rtol=2e-6)
    assert [m.params["C"] for m in found[1:4]] == [1.0, 1.0, 5.0] and found[-1].params["lambda1"] == 30.0
    assert np.allclose([m.certificate.objective for m in found], found.objective)
    with pytest.raises(IndexError):
        found[6]


@pytest.mark.extras
def test_a_frame_has_a_row_per_point():
    pytest.importorskip("pandas")
    X, y, _ = rows()
    found = path("ldm", X, y, GRID)
    frame = found.to_frame()
    assert list(frame.columns) == ["C", "lambda1", "objective", "lower_bound", "gap", "converged", "n_iter"]
    assert np.array_equal(frame["gap"], found.gap) and list(frame["C"]) == [p["C"] for p in found.points]


ERRORS = {
    "empty mapping": ({}, {}, "^grid is empty; give a mapping"),
    "empty sequence": ([], {}, "^grid is empty; give at least one point"),
    "empty values": ({"C": []}, {}, r"^grid\['C'\] is empty; give at least one value"),
    "one value": ({"C": 3.0}, {}, r"^grid\['C'\] needs to be a sequence of values; got 3.0"),
    "a string": ({"C": "12"}, {}, r"^grid\['C'\] needs to be a sequence of values; got '12'"),
    "an array of no dimension": ({"C": np.array(3.0)}, {}, r"^grid\['C'\] needs to be a sequence of values; got array"),
    "no grid": (7, {}, "^grid needs to be a mapping of names to values, or a sequence of such grids; got 7"),
    "no point": ([3.0], {}, r"^grid\[0\] needs to be a mapping of hyper-parameters to values; got 3.0"),
    "a name of another type": ({3: [1.0]}, {}, "^a grid needs names of hyper-parameters; got 3"),
    "unknown name": ({"nu": [1.0]}, {}, "^objective 'ldm' has no parameter 'nu' here; valid: C, lambda1, lambda2"),
    "a slip": ({"lamda1": [1.0]}, {}, "has no parameter 'lamda1' here; .*; did you mean 'lambda1'[?]$"),
    "an argument of fit": ({"tol": [1e-3]}, {}, "^objective 'ldm' has no parameter 'tol' here"),
    "a kernel's parameter": ({"gamma": [1.0]}, {}, "^objective 'ldm' has no parameter 'gamma' here"),
    "a value out of range": ({"C": [1.0, -1.0]}, {}, "^C needs to be a number >= 0; got -1.0"),
    "twice": ({"C": [1.0]}, {"C": 2.0}, "^'C' is in the grid and has one value beside it; give it once"),
    "empty values of several": ([{"C": 1.0}, {"C": []}], {}, r"^grid\[1\]\['C'\] is empty; give at least one value"),
    "an unknown parameter beside": ({"C": [1.0]}, {"nu": 1.0}, "^objective 'ldm' has no parameter 'nu' here"),
    "warm_start": ({"C": [1.0]}, {"warm_start": None}, "^objective 'ldm' has no parameter 'warm_start' here"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_sentence_before_any_work(name):
    grid, params, told = ERRORS[name]
    with pytest.raises((ValueError, TypeError), match=told) as caught:
        mdlearn.fit_path("ldm", None, None, grid, **params)  # the data are not looked at
    assert "\n" not in str(caught.value)


def test_default_grids_grow_with_the_weights():
    for name, cls in registry().objectives.items():
        if not cls.parameters:
            with pytest.raises(ValueError, match=f"^objective '{name}' has no default grid .*; give grid="):
                cls().grid(10.0)
            continue
        points = cls().grid(10.0)
        names = list(points) if isinstance(points, dict) else list(points[0])
        assert set(names) <= set(cls.parameters)
    small, large = ({p["lambda1"] for p in mdlearn.objectives.ldm.LDM(C=2.0).grid(m)} for m in (10.0, 1000.0))
    assert small == {r * 20.0 for r in (0, 2**-10, 2**-8, 2**-6, 2**-4, 2**-2, 1)}
    assert large == {100 * value for value in small}
    X, y, _ = rows()
    found = path("ldm", X, y, None, C=2.0, sample_weight=np.full(len(y), 10 / len(y)))
    assert sorted({p["lambda1"] for p in found.points}) == pytest.approx(sorted(small)) and found.converged.all()
    assert all(list(point) == ["lambda1", "lambda2"] and point["lambda2"] <= point["lambda1"] for point in found.points)
    with pytest.raises(ValueError, match="no default grid for what is left open"):
        mdlearn.fit_path("svm", X, y, C=1.0)


def test_an_objective_without_a_grid_of_its_own_gets_one_by_its_weight():
    class Own(Objective):
        name = "own"
        parameters: ClassVar = {"theta": Parameter(0.5, "no weight"), "lam": Parameter(lambda p, m: m, "a weight")}

        def terms(self, params, total):
            return Terms(variance=params["lam"] / total, mean=1.0)

    assert Own().grid(8.0) == {"lam": [8.0 * 10.0**k for k in range(-3, 4)]}
    X, y, _ = rows()
    assert path(Own, X, y, None, theta=0.1).converged.all()


def test_a_time_limit_holds_for_the_whole_path(clock):
    X, y, _ = rows()
    with pytest.warns(
        mdlearn.ConvergenceWarning, match=r"^6 of 6 points .* \(time_limit reached\); allow more"
    ) as told:
        found = mdlearn.fit_path("ldm", X, y, GRID, time_limit=0.0, **RBF)
    assert len(told) == 1 and len(found) == 6 and not found.converged.any()
    assert not found.decision_function(X).any() and found.certificates[0].objective > 0
    began = clock.now
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        slow = {"callback": lambda state: clock.sleep(0.1), "time_limit": 0.35, **RBF}
        found = mdlearn.fit_path("ldm", X, y, {"C": 10.0 ** np.arange(-2, 5, 0.1)}, lambda1=9.0, **slow)
    assert clock.now - began < 0.35 + 0.2  # no fit of the 70 begins after the limit; one reports once more
    assert found.converged.any() and not found.converged.all()


def test_a_callback_sees_points_and_stops_the_path():
    X, y, _ = rows(k=3)
    seen = []

    def callback(state):
        seen.append((state.point, state.problem))
        return len({point for point, _ in seen}) == 3

    with pytest.warns(mdlearn.ConvergenceWarning, match=r"^[34] of 6 points .*\(stopped by the callback\)"):
        found = mdlearn.fit_path("ldm", X, y, GRID, callback=callback)
    assert len({point for point, _ in seen}) == 3 and {problem for _, problem in seen} == {0, 1, 2}
    assert 2 <= found.converged.sum() <= 3
    assert found[0].history[0].point is None


def test_a_path_can_be_pickled_whatever_the_callback_was():
    X, y, _ = rows()
    kept = pickle.loads(pickle.dumps(found := mdlearn.fit_path("ldm", X, y, GRID, callback=lambda state: None, **RBF)))
    assert np.array_equal(kept.decision_function(X), found.decision_function(X)) and repr(kept) == repr(found)


def test_progress_is_a_line_per_path(capsys):
    X, y, _ = rows()
    path("ldm", X, y, GRID, verbose=1)
    told = capsys.readouterr().err.strip().splitlines()
    assert re.fullmatch(r"path of 'ldm': 6 of 6 fits, gap \S+, \d+\.\d s, about 0\.0 s left", told[-1])


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals to threads")
def test_interruption():
    X, y, _ = rows(m=500)
    grid = {"C": 10.0 ** np.arange(-2, 5, 0.01)}
    interrupted(lambda: path("ldm", X, y, grid, lambda1=9.0, **RBF), 0.3)


def test_points_share_the_gram_matrix_and_its_decomposition(monkeypatch):
    X, y, _ = rows()
    made, split = [], []
    plain, whole = KernelFeatures.__init__, decomposed.symmetric_eigen
    monkeypatch.setattr(KernelFeatures, "__init__", lambda self, *a, **k: made.append(1) or plain(self, *a, **k))
    monkeypatch.setattr(decomposed, "symmetric_eigen", lambda *a, **k: split.append(1) or whole(*a, **k))
    grid = {"C": [1.0, 5.0], "lambda1": [1.0, 9.0, 90.0], "lambda2": [0.0, 1.0]}
    path("ldm", X, y, grid, **RBF)
    assert len(made) == 1 and len(split) == 1
    path("ldm", X, y, {**grid, "gamma": [0.1, 1.0]}, kernel="rbf")
    assert len(made) == 3 and len(split) == 3
    path("uldm", X, y, {"C": [1e-3, 0.1]}, **RBF)
    path("ldm", X, y, {"C": [1.0]}, lambda1=2.0, **RBF)
    assert len(split) == 3


def test_order_and_neighbours():
    route = GridRoute([[2.0, 1.0], [0.0, 1.0], [1.0, 4.0], [1.0, np.inf], [0.0, 0.0]])
    assert route.order == [4, 1, 2, 3, 0]
    # Points 4, 1 and 2 have come when point 3 does, which is one step from point 2; point 1 is one step from point 4.
    assert [route.before(t) for t in range(4)] == [None, 4, 1, 2]
    assert GridRoute([None, None]).order == [0, 1]
    a, b = np.arange(3), np.arange(3)
    assert equal_grid_points([({"x": a},), ({"x": 1},), ({"x": b},), ({"x": a[::-1]},)]) == [[0, 2], [1], [3]]


@pytest.mark.extras
def test_a_sequence_of_grids_is_their_union():
    """As scikit-learn's ParameterGrid has it, names that some grids lack included; there a value may stand alone."""
    from sklearn.model_selection import ParameterGrid

    X, y, _ = rows()
    grids = [
        {"C": [1, 10]},
        {"C": np.logspace(0, 1, 2), "lambda1": (0.0, 1.0)},
        {"lambda2": np.array([0.5], dtype="f")},
    ]
    found = mdlearn.fit_path("ldm", X, y, grids)
    want = list(ParameterGrid([{k: list(v) for k, v in grid.items()} for grid in grids]))
    assert sorted(map(repr, map(sorted, map(dict.items, found.points)))) == sorted(
        map(repr, map(sorted, map(dict.items, want)))
    )
    assert list(found.to_frame().columns[:3]) == ["C", "lambda1", "lambda2"]
    assert mdlearn.select("ldm", X, y, [{"C": [1, 10]}], cv=2).points == ({"C": 1}, {"C": 10})
    alone = mdlearn.fit_path("ldm", X, y, [{"C": 2.0, "lambda1": [1.0, 2.0]}, {"C": np.array(3.0)}])
    assert [point["C"] for point in alone.points] == [2.0, 2.0, 3.0]
    assert [model.params["C"] for model in alone] == [2.0, 2.0, 3.0]


@pytest.mark.parametrize("value", [np.float32(2.0), np.float64(2.0), np.int64(2), np.array(2.0), np.array(2)])
def test_scalars_of_numpy_are_numbers(value):
    X, y, _ = rows()
    settings = {"random_state": 0, "tol": 1e-6}
    model = mdlearn.fit("svm", X, y, C=value, max_iter=np.array(500), n_threads=np.int32(1), **settings)
    plain = mdlearn.fit("svm", X, y, C=2.0, max_iter=500, n_threads=1, **settings)
    assert model.params == plain.params and (model.coef_ == plain.coef_).all()


def test_strings_of_numpy_are_names():
    X, y, _ = rows(k=3)
    names = {"kernel": "rbf", "solver": "cd", "bias": "none", "multiclass": "ovo", "class_weight": "balanced"}
    model = mdlearn.fit(np.str_("svm"), X, y, **{key: np.str_(name) for key, name in names.items()})
    assert (model.duals == mdlearn.fit("svm", X, y, **names).duals).all()


def test_arrays_of_numpy_stand_for_what_they_hold():
    X, y, _ = rows()
    found = mdlearn.select("svm", X, y, np.array([{"C": np.array([1.0, 5.0])}, {"C": 9.0}]), cv=np.array(2))
    assert [point["C"] for point in found.points] == [1.0, 5.0, 9.0] and found.scores.shape == (3, 2)
    plain, given = ({label: kind(3.0) for label in set(y.tolist())} for kind in (float, np.array))
    models = [mdlearn.fit("svm", X, y, class_weight=factors) for factors in (plain, given)]
    assert (models[0].coef_ == models[1].coef_).all()
    with pytest.raises(TypeError, match=r"^grid needs to be a mapping of names to values, or a sequence of such grids"):
        mdlearn.fit_path("svm", X, y, np.array(3.0))


SLIPS = {
    "objective": (("lmd",), {}, "ldm"),
    "solver": (("ldm",), {"solver": "interor"}, "interior"),
    "kernel": (("ldm",), {"kernel": "RBF"}, "rbf"),
    "parameter": (("ldm",), {"lamda1": 1.0}, "lambda1"),
    "argument": (("ldm",), {"max_itr": 1}, "max_iter"),
    "bias": (("ldm",), {"bias": "fre"}, "free"),
    "multiclass": (("ldm",), {"multiclass": "ov"}, "ovr"),
    "option": (("svm",), {"solver": "asgd", "solver_options": {"epoch": 2}}, "epochs"),
    "option of auto": (("svm",), {"solver_options": {"epoch": 2}}, "epochs"),
    "basis": (("uldm",), {"basis": "euclidian"}, "euclidean"),
    "landmarks": (("l3svm",), {"landmark_selection": "kmean"}, "kmeans"),
    "loss": (("l3svm",), {"loss": "squaredhinge"}, "squared_hinge"),
    "approximation": (("svm",), {"kernel": "rbf", "approximation": "nystrom"}, "nystroem"),
    "projection": (("l3svm",), {"projection": "rfb"}, "rbf"),
    "gamma": (("svm",), {"kernel": "rbf", "gamma": "scaled"}, "scale"),
    "class weight": (("svm",), {"class_weight": "balance"}, "balanced"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_unknown_names_come_with_the_nearest_one(name):
    objective, given, meant = SLIPS[name]
    X, y, _ = rows()
    with pytest.raises(ValueError, match=f"; did you mean '{meant}'[?]$"):
        mdlearn.fit(*objective, X, y, **given)


def test_a_slip_in_cv():
    X, y, _ = rows()
    with pytest.raises(ValueError, match=r"; did you mean 'pseudo-loo'[?]$"):
        mdlearn.cross_validate("svm", X, y, cv="pseudo_loo")
