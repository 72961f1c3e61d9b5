"""Models as pickles and copies: the same bits, nothing of the fit beyond what a model is."""

import copy
import gc
import io
import pickle
import sys
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from persistence_cases import CASES, data, fitted

import mdlearn

pytestmark = pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")

WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{f"pickle {p}": lambda model, p=p: pickle.loads(pickle.dumps(model, p)) for p in (0, 2, 5)},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_a_copy_is_the_same_model(case, way):
    model, X, y = fitted(**CASES[case])
    f = model.decision_function(X)
    again = WAYS[way](model)
    assert type(again) is type(model) and repr(again) == repr(model)
    assert again.history == model.history and again.certificate == model.certificate and again.params == model.params
    assert_array_equal(again.decision_function(X), f, strict=True)
    assert_array_equal(again.predict(X), model.predict(X), strict=True)
    assert_array_equal(again.dual_coef_, model.dual_coef_, strict=True)
    assert again.score(X, y) == model.score(X, y)
    assert "_scorer" not in vars(again) or "_scorer" in vars(model)


@pytest.mark.parametrize("case", ["linear", "rbf", "csr"])
def test_a_deep_copy_shares_no_array(case):
    model, X, _ = fitted(**CASES[case])
    f, again = model.decision_function(X), copy.deepcopy(model)
    for array in (again.duals, again.intercept_, again._alpha):
        array[...] = 1.0
    assert_array_equal(model.decision_function(X), f)
    assert not any(again.decision_function(X) == f)


@pytest.mark.parametrize("objective", ["ldm", "l3svm", "uldm", "lssvm", "mdlm", "lsvm"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_model_does_not_hold_the_rows_of_its_fit(objective, kernel):
    if objective == "mdlm" and kernel == "rbf":
        pytest.skip("linear objective")
    X, y = data(3, m=400)
    X = np.concatenate([X, X[:100] + 50.0])
    y = np.r_[y, y[:100]]
    given = {"n_clusters": 3, "n_landmarks": 3} if objective == "l3svm" else {}
    watched = weakref.ref(X)
    model = mdlearn.fit(objective, X, y, kernel=kernel, **given)
    small = X[:5].copy()
    f = model.decision_function(small)
    del X
    gc.collect()
    assert watched() is None
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(small), f, strict=True)
    held = [model.duals, model.intercept_, model._norms, model.support_]
    held += [a for a in (model._coef, model._alpha, *model.extras.values()) if isinstance(a, np.ndarray)]
    if model._rows is not None:
        held += [model._rows.X, model._rows.X]  # once for rows that are the basis, too
    assert len(pickle.dumps(model)) < 8000 + 2 * sum(a.nbytes for a in held)


def test_history_and_caches_stay_small_and_plain():
    model, X, _ = fitted(objective="l3svm", n_clusters=3, n_landmarks=3)
    before = len(pickle.dumps(model))
    model.decision_function(X)
    assert "_scorer" in vars(model) and len(pickle.dumps(model)) == before
    names = set()

    class Watch(pickle.Unpickler):
        def find_class(self, module, name):
            names.add(module.split(".")[0] + "." + (module.split(".")[1] if "." in module else ""))
            return super().find_class(module, name)

    Watch(io.BytesIO(pickle.dumps(model))).load()
    ours = {name for name in names if name.startswith("mdlearn")}
    assert ours == {"mdlearn.model", "mdlearn.forms", "mdlearn.data"}  # no engine, driver or plugin


def kernel_of_this_module(A, B):
    return A @ B.T + 1.0


def test_callables_go_by_name_or_not_at_all():
    model, X, _ = fitted(kernel=kernel_of_this_module)
    sys.modules.setdefault(kernel_of_this_module.__module__, sys.modules[__name__])
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), model.decision_function(X), strict=True)
    local, _, _ = fitted(kernel=lambda A, B: A @ B.T)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(local)
    assert_array_equal(copy.deepcopy(local).decision_function(X), local.decision_function(X), strict=True)


def test_joblib(tmp_path):
    joblib = pytest.importorskip("joblib")
    for transform in (np.asarray, sp.csr_matrix):
        model, X, _ = fitted(kernel="rbf", transform=transform)
        joblib.dump(model, tmp_path / "m.joblib")
        again = joblib.load(tmp_path / "m.joblib", mmap_mode="r")
        assert isinstance(again.duals, np.memmap) and not again.duals.flags.writeable
        assert_array_equal(again.decision_function(X), model.decision_function(X), strict=True)
        assert joblib.hash(again) == joblib.hash(copy.deepcopy(again))
        again.save(tmp_path / "m.npz")
        assert_array_equal(mdlearn.load(tmp_path / "m.npz").predict(X), model.predict(X), strict=True)


def test_a_model_of_mapped_rows_is_no_map(tmp_path):
    X, y = data()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = mdlearn.fit("ldm", mapped, y, kernel="rbf")
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), model.decision_function(X), strict=True)
    assert_array_equal(again.decision_function(mapped), model.decision_function(X), strict=True)
