"""Fits to row blocks: the answer of the fit in memory whatever the blocks are."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn.data.row_blocks.source import Tree
from mdlearn.forms.losses import HingeTerm
from mdlearn.objectives.base import Terms
from mdlearn.objectives.ldm import LDM
from mdlearn.streaming.engines.newton_state_machine import BlockNewton, NewtonState
from mdlearn.streaming.first_passes import form_of_first_passes

MODELS = {
    "svm": {},
    "svm, C = 100": {"C": 100.0},
    "ldm": {},
    "ldm, large weights": {"C": 10.0, "lambda1": 900.0, "lambda2": 300.0},
    "lsvm": {},
    "uldm": {},
    "lssvm": {},
    "lsldm": {"lambda1": 100.0},
    "l2lr": {},
    "mlr": {},
    "mdlm": {},
    "mdlm, ridge": {"ridge": 0.1},
}


def rows(m=600, d=5, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) * np.exp(0.5 * rng.standard_normal(d)) + 0.5
    f = X @ rng.standard_normal(d) + rng.standard_normal(m)
    return X, np.digitize(f, np.quantile(f, np.arange(1, k) / k))


def cut(X, y, places, weights=None):
    """Blocks between places."""
    ends = [0, *places, y.shape[0]]
    parts = [slice(a, b) for a, b in pairwise(ends)]
    return [(X[part], y[part]) if weights is None else (X[part], y[part], weights[part]) for part in parts]


def same(streamed, held, tol=1e-8):
    """The same objective, both certified."""
    assert streamed.certificate.converged
    one, other = streamed.certificate.objective, held.certificate.objective
    assert abs(one - other) <= tol * abs(other)
    assert streamed.certificate.lower_bound <= one


# ---------------------------------------------------------------- the same answer


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("name", MODELS)
def test_the_answer_of_the_fit_in_memory(name, bias):
    X, y = rows()
    given = {"bias": bias, "tol": 1e-10, **MODELS[name]}
    objective = name.split(",")[0]
    streamed = mdlearn.fit(objective, cut(X, y, [100, 350]), None, **given)
    held = mdlearn.fit(objective, X, y, **given)
    same(streamed, held)
    assert np.allclose(streamed.coef_, held.coef_, atol=1e-3 * np.abs(held.coef_).max())
    assert np.array_equal(streamed.classes_, held.classes_)
    assert streamed.n_features_in_ == 5


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("name", ["svm", "svm, C = 100", "ldm", "ldm, large weights"])
def test_few_rows_in_memory(name, bias):
    """Kinks are rounded off until few rows are near them; these few are solved for exactly."""
    X, y = rows(4000, 6)
    given = {"bias": bias, "tol": 1e-9, **MODELS[name]}
    objective = name.split(",")[0]
    source = mdlearn.RowBlocks(cut(X, y, range(500, 4000, 500)), held=150)
    streamed = mdlearn.fit(objective, source, None, **given)
    same(streamed, mdlearn.fit(objective, X, y, **given))
    assert streamed.n_iter <= 40


@pytest.mark.slow
@pytest.mark.parametrize("places", [[], [1], [599], [0, 0, 600, 600], list(range(1, 600)), [7, 8, 300]])
@pytest.mark.parametrize("objective", ["ldm", "lsvm", "mdlm"])
def test_blocks_of_any_size(objective, places):
    X, y = rows()
    same(mdlearn.fit(objective, cut(X, y, places), None, tol=1e-10), mdlearn.fit(objective, X, y, tol=1e-10))


@pytest.mark.parametrize("objective", ["ldm", "lsvm", "uldm", "mdlm"])
def test_a_block_with_one_class(objective):
    X, y = rows()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    same(mdlearn.fit(objective, cut(X, y, [200, 400]), None, tol=1e-10), mdlearn.fit(objective, X, y, tol=1e-10))


@pytest.mark.parametrize("objective, way", [("ldm", "ovr"), ("lsvm", "ovr"), ("mdlm", "ovr"), ("mdlm", "joint")])
def test_several_classes(objective, way):
    X, y = rows(k=4)
    given = {"multiclass": way, "tol": 1e-10}
    streamed = mdlearn.fit(objective, cut(X, y, [100, 101, 500]), None, **given)
    held = mdlearn.fit(objective, X, y, **given)
    same(streamed, held)
    assert np.allclose(streamed.decision_function(X), held.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
@pytest.mark.parametrize("objective", ["ldm", "lsvm", "uldm", "l2lr"])
def test_weights_are_repetitions(objective, class_weight):
    X, y = rows()
    weights = np.random.default_rng(1).integers(0, 3, 600)
    given = {"class_weight": class_weight, "tol": 1e-10}
    streamed = mdlearn.fit(objective, cut(X, y, [50, 400], weights), None, **given)
    repeated = np.repeat(np.arange(600), weights)
    same(streamed, mdlearn.fit(objective, X[repeated], y[repeated], **given))


def test_blocks_without_weight_and_labels_that_only_these_have():
    X, y = rows()
    weights, y = np.ones(600), y.copy()
    weights[:100], y[:50] = 0.0, 7
    streamed = mdlearn.fit("lsvm", cut(X, y, [100], weights), None)
    same(streamed, mdlearn.fit("lsvm", X[100:], y[100:]))
    assert streamed.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["float32", "csr", "csr64", "fortran", "mixed"])
@pytest.mark.parametrize("objective", ["ldm", "lsvm"])
def test_types_and_layouts(objective, kind):
    X, y = rows()
    X = np.where(np.random.default_rng(2).random(X.shape) < 0.4, X, 0.0)
    if kind == "float32":
        X = X.astype(np.float32)
    given = X
    if kind.startswith("csr"):
        given = sp.csr_matrix(X)
        if kind == "csr64":
            given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    if kind == "fortran":
        given = np.asfortranarray(X)
    blocks = cut(given, y, [200])
    if kind == "mixed":
        blocks = [
            (X[:200].astype(np.float32).astype(float).astype(np.float32), y[:200]),
            (sp.csr_matrix(X[200:]), y[200:]),
        ]
        X = np.vstack([X[:200].astype(np.float32), X[200:]])
    tol = 1e-5 if kind == "float32" else 1e-10
    streamed = mdlearn.fit(objective, blocks, None, tol=tol)
    same(streamed, mdlearn.fit(objective, X, y, tol=tol), 1e-5 if kind == "float32" else 1e-8)
    assert streamed.coef_.dtype == (np.float32 if kind == "float32" else np.float64)


def test_memory_maps_and_functions(tmp_path):
    X, y = rows()
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    calls = []

    def source():
        calls.append(1)
        for start in range(0, 600, 150):
            yield mapped[start : start + 150], y[start : start + 150]

    streamed = mdlearn.fit("lsvm", source, None)
    same(streamed, mdlearn.fit("lsvm", X.astype(np.float32), y), 1e-6)
    assert len(calls) == streamed.n_iter + 2  # the first pass counts, the last one certifies


def test_the_same_bits():
    X, y = rows(k=3)
    found = [mdlearn.fit("ldm", cut(X, y, [100, 300]), None) for _ in range(2)]
    assert np.array_equal(found[0].coef_, found[1].coef_)
    assert found[0].certificate == found[1].certificate


def test_sums_in_pairs():
    """Whoever adds neighbours, and neighbours of these, gets the same bits."""
    rng = np.random.default_rng(0)
    for n in range(1, 20):
        values = list(rng.standard_normal(n) * 10.0 ** rng.integers(-8, 8, n))
        tree = Tree()
        for value in values:
            tree.push(value)
        while len(values) > 1:
            pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
            values = [pair[0] + pair[1] if len(pair) > 1 else pair[0] for pair in pairs]
        assert tree.total() == values[0]
    assert Tree().total() is None


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows():
    def peak(n):
        def source():
            for seed in range(n):
                rng = np.random.default_rng(seed)
                X = rng.standard_normal((2000, 8))
                yield X, X[:, 0] + rng.standard_normal(2000) > 0

        tracemalloc.start()
        model = mdlearn.fit("ldm", mdlearn.RowBlocks(source, held=500), None)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert model.certificate.converged
        return most

    peak(4)  # what is imported or cached at first use
    few, many = peak(8), peak(64)
    assert many < 1.3 * few


# ---------------------------------------------------------------- the model


def test_the_model_predicts_and_is_saved(tmp_path):
    X, y = rows()
    labels = np.array(["no", "yes"])[y]
    model = mdlearn.fit("ldm", cut(X, labels, [300]), None)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, labels) > 0.7
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert "row blocks" in model.solver_reason


@pytest.mark.extras
def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = mdlearn.fit("lsvm", [(frame[:100], y[:100]), (frame[100:], y[100:])], None)
    assert list(model.feature_names_in_) == list("abcde")


# ---------------------------------------------------------------- limits


def test_limits_and_callback():
    X, y = rows()
    seen = []
    with pytest.warns(mdlearn.ConvergenceWarning, match="row blocks stopped .*max_iter = 2 reached"):
        model = mdlearn.fit("lsvm", cut(X, y, [300]), None, max_iter=2, callback=lambda state: seen.append(state))
    assert [state.iteration for state in seen] == [1, 2]
    assert model.n_iter == 2
    assert model.certificate.gap > 1e-6
    assert model.certificate.lower_bound > -np.inf
    with pytest.warns(mdlearn.ConvergenceWarning, match="stopped by the callback"):
        assert mdlearn.fit("lsvm", cut(X, y, [300]), None, callback=lambda state: True).n_iter == 1
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        assert mdlearn.fit("lsvm", cut(X, y, [300]), None, time_limit=0.0).n_iter == 0


def test_a_time_limit_ends_a_pass(clock):
    X, y = rows()
    read = []

    def source():
        for start in range(0, 600, 60):
            read.append(start)
            if len(read) > 20:  # in the second pass of the steps
                clock.sleep(0.2)
            yield X[start : start + 60], y[start : start + 60]

    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        model = mdlearn.fit("lsvm", source, None, time_limit=0.5)
    assert model.n_iter == 1
    assert len(read) < 40  # the last ten certify what there is
    assert model.certificate.lower_bound > -np.inf


def test_objectives_of_plugins_that_declare_terms():
    class Band(mdlearn.Objective):
        name = "band"

        def terms(self, params, total):
            return Terms(loss=(HingeTerm(1.0, threshold=1.2, power=2), HingeTerm(0.5, -1, 1.8, 2)))

    X, y = rows()
    same(mdlearn.fit(Band, cut(X, y, [300]), None, tol=1e-10), mdlearn.fit(Band, X, y, tol=1e-10))


def test_work_and_sums_can_be_sent_to_other_processes():
    X, y = rows()
    blocks = mdlearn.RowBlocks(cut(X, y, [300]))

    def finished(work):
        while True:
            try:
                next(work)
            except StopIteration as done:
                return done.value

    summary = finished(blocks.scan(None))
    task = LDM()
    form = form_of_first_passes(task, task.resolve(summary.total), summary, "regularized")
    work = BlockNewton(form, 1e-6, NewtonState.first(form)).work()
    sent = pickle.loads(pickle.dumps(work))
    own, other = finished(blocks.fold(work, summary)), finished(blocks.fold(sent, summary))
    assert all(np.array_equal(own[name], pickle.loads(pickle.dumps(other))[name]) for name in own)


def test_progress(capfd):
    X, y = rows()
    mdlearn.fit("lsvm", cut(X, y, [300]), None, verbose=2)
    assert capfd.readouterr().err.count("newton: iteration") >= 3


def test_nothing_is_written_to():
    X, y = rows()
    X.flags.writeable = y.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mdlearn.fit("ldm", cut(X, y, [300]), None)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [None, 2])
@pytest.mark.parametrize("objective, given", [("ldm", {}), ("svm", {"solver": "asgd"}), ("mdlm", {"beta": 0.1})])
def test_the_history_ends_with_the_certificate_and_contradicts_it_nowhere(objective, given, max_iter):
    X, y = rows(k=3)
    model = mdlearn.fit(objective, cut(X, y, [250]), None, max_iter=max_iter, tol=1e-9, **given)
    for j, told in enumerate(model.certificate.parts or [model.certificate]):
        history = [state for state in model.history if state.problem == j]
        last = history[-1]
        assert (last.objective, last.lower_bound, last.gap) == (told.objective, told.lower_bound, told.gap)
        assert all(state.objective >= told.objective and state.lower_bound <= told.lower_bound for state in history)
        assert all(state.gap > told.tol for state in history[:-1])
