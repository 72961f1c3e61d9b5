"""Models as files: the same model comes back, and what is written is whole, also when saving ends early."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from persistence_cases import CASES, data, fitted

import mdlearn
from mdlearn.model.file import persistence
from mdlearn.plugins.model_files import load_model_with_plugins

pytestmark = pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")


def same_state(a, b):
    assert_array_equal([list(vars(s).values()) for s in a], [list(vars(s).values()) for s in b])


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_model_is_the_saved_one(case, tmp_path):
    model, X, y = fitted(**CASES[case])
    path = tmp_path / "m.npz"
    assert model.save(path) is None
    again = mdlearn.load(path)
    assert type(again) is mdlearn.Model and repr(again) == repr(model)
    for name in ("classes_", "intercept_", "dual_coef_", "duals", "support_", "n_support_"):
        old, new = getattr(model, name), getattr(again, name)
        assert_array_equal(old, new, strict=True)
    engine = ("solver", "solver_reason", "solver_claims", "n_iter")
    for name in ("objective", "params", "bias", *engine, "n_features_in_", "certificate"):
        assert getattr(model, name) == getattr(again, name), name
    assert again.kernel.name == model.kernel.name and again.kernel.params == model.kernel.params
    assert type(again.history[0] if again.history else None) is type(model.history[0] if model.history else None)
    same_state(model.history, again.history)
    if model.kernel.name == "linear":
        assert_array_equal(model.coef_, again.coef_, strict=True)
    assert_array_equal(model.decision_function(X), again.decision_function(X), strict=True)
    assert_array_equal(model.predict(X), again.predict(X), strict=True)
    assert_array_equal(model.margins(X, y, normalized=True), again.margins(X, y, normalized=True), strict=True)
    assert model.score(X, y) == again.score(X, y)
    if sp.issparse(X):
        assert_array_equal(model.decision_function(X.toarray()), again.decision_function(X.toarray()))


LABELS = {
    "int8": np.array([-1, 1], np.int8),
    "int64": np.array([7, 2**60]),
    "uint16": np.array([0, 65535], np.uint16),
    "big-endian": np.array([3, 4], ">i4"),
    "float64": np.array([0.1, 0.30000000000000004]),
    "float32": np.array([-0.5, 1e-30], np.float32),
    "bool": np.array([False, True]),
    "str": np.array(["no", "yes, \u00fc\U0001f600"]),
    "bytes": np.array([b"a", b"bc"]),
    "datetime64": np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
    "object": np.array(["cat", "dog"], dtype=object),
    "three": np.array(["a", "b", "c"]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_keep_kind_and_value(kind, tmp_path):
    X, codes = data(len(LABELS[kind]))
    model = mdlearn.fit("svm", X, LABELS[kind][codes])
    model.save(tmp_path / "m.npz")
    again = mdlearn.load(tmp_path / "m.npz")
    assert again.classes_.dtype == model.classes_.dtype
    assert_array_equal(again.classes_, model.classes_, strict=True)
    assert_array_equal(again.predict(X), model.predict(X), strict=True)


@pytest.mark.extras
def test_column_names_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "\u00fc", "d"])
    mdlearn.fit("ldm", frame, y).save(tmp_path / "m.npz")
    model = mdlearn.load(tmp_path / "m.npz")
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="columns"):
        model.predict(frame[["b", "a", "\u00fc", "d"]])


def test_what_cannot_be_saved_says_so(tmp_path):
    path = tmp_path / "m.npz"
    model, _, _ = fitted(kernel=lambda A, B: A @ B.T)
    with pytest.raises(ValueError, match="callable kernel cannot be saved"):
        model.save(path)
    from fractions import Fraction

    X, codes = data()
    model = mdlearn.fit("ldm", X, np.array([Fraction(1, 3), Fraction(1, 2)], dtype=object)[codes])
    with pytest.raises(ValueError, match="labels of dtype object cannot be saved"):
        model.save(path)
    model, _, _ = fitted()
    model.params["secret"] = object()
    with pytest.raises(ValueError, match=r"params 'secret' cannot be saved"):
        model.save(path)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_plain_numpy_and_json(tmp_path):
    model, _, _ = fitted(C=2.0, time_limit=0.0)
    model.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        header = json.loads(file["header"].tobytes())
        assert_array_equal(file["coef"], model.coef_)
    assert header["format"] == "mdlearn model" and header["version"] == 5 and header["params"]["C"] == 2.0
    values = {"objective", "lower_bound", "gap", "kind", "tol", "converged", "distance"}
    assert {*header["certificate"]} == {*values, "parts"}


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model, _, _ = fitted(kernel="rbf")
    model.save(tmp_path / "a.npz")
    mdlearn.load(tmp_path / "a.npz").save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_notes_come_back(tmp_path):
    model, _, _ = fitted()
    persistence.save(model, tmp_path / "m.npz", {"zero_based": True, "x": float("inf")})
    assert load_model_with_plugins(tmp_path / "m.npz")[1] == {"zero_based": True, "x": float("inf")}


# Writing


@pytest.mark.parametrize("step", ["replace", "fsync"])
@pytest.mark.parametrize("blow", [OSError("disk full"), KeyboardInterrupt()])
def test_an_end_before_the_renaming_leaves_the_old_file(step, blow, tmp_path, monkeypatch):
    model, _, _ = fitted()
    path = tmp_path / "m.npz"
    model.save(path)
    old = path.read_bytes()
    other, _, _ = fitted(C=50.0)
    drafts = []

    def die(*_):
        drafts.extend(p for p in tmp_path.iterdir() if p != path)
        raise blow

    with monkeypatch.context() as patch:
        patch.setattr(persistence.os, step, die)
        with pytest.raises(type(blow)):
            other.save(path)
    assert len(drafts) == 1  # the new content was in a file of its own, beside the old one
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == old
    other.save(path)
    assert_array_equal(mdlearn.load(path).coef_, other.coef_)


def test_the_draft_is_complete_and_on_disk_before_it_is_renamed(tmp_path, monkeypatch):
    model, X, _ = fitted()
    events = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(persistence.os, "fsync", lambda handle: (events.append("fsync"), fsync(handle))[1])

    def checked(draft, target):
        assert os.path.dirname(draft) == os.path.dirname(target)
        assert_array_equal(mdlearn.load(draft).predict(X), model.predict(X))
        events.append("replace")
        replace(draft, target)

    monkeypatch.setattr(persistence.os, "replace", checked)
    model.save(tmp_path / "m.npz")
    assert events[:2] == ["fsync", "replace"]


@pytest.mark.skipif(os.name != "posix", reason="links, modes and devices of POSIX")
def test_links_modes_and_devices(tmp_path):
    model, _, _ = fitted()
    real, link = tmp_path / "real.npz", tmp_path / "link.npz"
    model.save(real)
    fresh = tmp_path / "fresh"
    fresh.write_text("")
    assert stat.S_IMODE(real.stat().st_mode) == stat.S_IMODE(fresh.stat().st_mode)
    real.chmod(0o640)
    link.symlink_to(real)
    model.save(link)
    assert link.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            model.save(place)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_errors_of_the_file_system_stay_such(tmp_path, monkeypatch):
    model, _, _ = fitted()
    with pytest.raises(FileNotFoundError, match="no folder"):
        model.save(tmp_path / "nowhere" / "m.npz")
    with pytest.raises(FileNotFoundError):
        mdlearn.load(tmp_path / "m.npz")
    monkeypatch.chdir(tmp_path)
    model.save("plain")
    assert mdlearn.load("plain").solver == model.solver
    assert Path("plain").exists() and not Path("plain.npz").exists()
