"""Models as files: the same model comes back, and no file, however damaged, does anything but load or raise."""

import io
import json
import os
import pickle
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import mdlearn
from mdlearn.model import persistence

pytestmark = pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")


def data(classes=2, m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(classes, size=m)
    codes[:classes] = np.arange(classes)
    return rng.normal(size=(m, d)) + np.eye(max(classes, d))[codes, :d] * 1.5, codes


def fitted(objective="ldm", classes=2, transform=lambda X: X, **given):
    X, y = data(classes)
    return mdlearn.fit(objective, transform(X), y, **given), transform(X), y


def gram(X):
    return X @ X.T


CASES = {
    "linear": {},
    "svm": {"objective": "svm"},
    "three classes": {"classes": 3},
    "free bias": {"bias": "free"},
    "no bias": {"bias": "none"},
    "rbf": {"kernel": "rbf"},
    "rbf, three classes": {"kernel": "rbf", "classes": 3, "gamma": 0.3},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "precomputed": {"kernel": "precomputed", "transform": gram},
    "float32": {"kernel": "rbf", "transform": lambda X: X.astype(np.float32)},
    "float32, linear": {"transform": lambda X: X.astype(np.float32)},
    "Fortran order": {"kernel": "rbf", "transform": np.asfortranarray},
    "csr": {"kernel": "rbf", "transform": lambda X: sp.csr_matrix(np.where(X > 0.5, X, 0.0))},
    "csr, float32": {"kernel": "poly", "transform": lambda X: sp.csr_array(np.where(X > 0.5, X, 0).astype(np.float32))},
    "csr, linear": {"transform": lambda X: sp.csr_matrix(np.where(X > 0.5, X, 0.0))},
    "hard margin that is not reached": {"C": np.inf, "objective": "svm", "kernel": "rbf", "gamma": 50.0, "max_iter": 1},
    "nothing done": {"time_limit": 0.0},
    "weights": {"sample_weight": np.r_[0.0, 2.0, np.ones(58)], "class_weight": "balanced"},
}


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
    for name in ("objective", "params", "bias", "solver", "solver_reason", "n_iter", "n_features_in_", "certificate"):
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
    assert header["format"] == "mdlearn model" and header["version"] == 2 and header["params"]["C"] == 2.0
    assert {*header["certificate"]} == {"objective", "lower_bound", "gap", "kind", "tol", "converged", "parts"}


def test_the_same_model_gives_the_same_bytes(tmp_path):
    model, _, _ = fitted(kernel="rbf")
    model.save(tmp_path / "a.npz")
    mdlearn.load(tmp_path / "a.npz").save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_notes_come_back(tmp_path):
    model, _, _ = fitted()
    persistence.save(model, tmp_path / "m.npz", {"zero_based": True, "x": float("inf")})
    assert persistence.load_with_notes(tmp_path / "m.npz")[1] == {"zero_based": True, "x": float("inf")}


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


# Damage


def refused(path, content=None):
    """The message of the ValueError that loading raises."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        mdlearn.load(path)
    assert type(caught.value) is ValueError
    text = str(caught.value)
    assert text.startswith(f"{path} cannot be loaded: ") and "\n" not in text[: len(str(path)) + 60]
    return text


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Bytes of three models, with the rows and the decision values that they give."""
    folder = tmp_path_factory.mktemp("models")
    made = {}
    for case in ("linear", "rbf, three classes", "csr"):
        model, X, _ = fitted(**CASES[case])
        model.save(folder / "m.npz")
        made[case] = (folder / "m.npz").read_bytes(), X, model
    return made


def loads_right_or_not_at_all(path, X, model):
    try:
        again = mdlearn.load(path)
    except ValueError:
        return False
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate == model.certificate and again.params == model.params
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", ["linear", "rbf, three classes", "csr"])
def test_damaged_files(case, files, tmp_path):
    content, X, model = files[case]
    path = tmp_path / "m.npz"
    rng = np.random.default_rng(0)
    loaded = 0
    for i in range(300):
        damaged = bytearray(content)
        at = rng.integers(len(content))
        if i % 3 == 0:
            # The end of a zip file is its directory, and each member starts with a header: not only the middle.
            at = len(content) - 1 - rng.integers(min(len(content), 1500))
        if i % 4 == 0:
            damaged[at] ^= 1 << rng.integers(8)
        elif i % 4 == 1:
            damaged[at : at + 8] = rng.bytes(8)
        elif i % 4 == 2:
            del damaged[at : at + rng.integers(1, 50)]
        else:
            damaged[at:at] = rng.bytes(rng.integers(1, 50))
        path.write_bytes(damaged)
        loaded += loads_right_or_not_at_all(path, X, model)
    assert loaded < 150  # a few bytes, such as dates, mean nothing


def test_truncated_files(files, tmp_path):
    content = files["linear"][0]
    for n in [*range(0, len(content), 61), *range(len(content) - 30, len(content))]:
        refused(tmp_path / "m.npz", content[:n])


def members(content):
    with np.load(io.BytesIO(content)) as file:
        return {name: file[name] for name in file.files}


def sealed(header, arrays):
    """A file whose digest is right, as someone would make it on purpose."""
    header = {**header, "arrays": {name: [a.dtype.str, list(a.shape)] for name, a in arrays.items()}}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    out = io.BytesIO()
    np.savez(out, header=text, digest=persistence._digest(text, arrays), **arrays)
    return out.getvalue()


def opened(content):
    arrays = members(content)
    header = json.loads(arrays.pop("header").tobytes())
    del arrays["digest"]
    return header, {name: arrays[name] for name in header["arrays"]}


def test_a_resealed_file_loads(files, tmp_path):
    """The helper above makes valid files, so the refusals below are about what they change."""
    for content, X, model in files.values():
        (tmp_path / "m.npz").write_bytes(sealed(*opened(content)))
        assert loads_right_or_not_at_all(tmp_path / "m.npz", X, model)


def test_arrays_changed_by_hand(files, tmp_path):
    arrays = members(files["linear"][0])
    arrays["coef"] = arrays["coef"] + 1e-9
    np.savez(tmp_path / "m.npz", **arrays)
    assert "changed after it was saved" in refused(tmp_path / "m.npz")
    arrays = members(files["linear"][0])
    np.savez(tmp_path / "m.npz", **arrays, more=np.ones(3))
    assert "not those that its header lists" in refused(tmp_path / "m.npz")
    np.savez_compressed(tmp_path / "m.npz", **arrays)
    assert "compressed" in refused(tmp_path / "m.npz")


def changes():
    """(name, which file, change of (header, arrays)); each gives a file that must be refused."""

    def header(*keys, to):
        def change(head, arrays):
            for key in keys[:-1]:
                head = head[key]
            if to is KeyError:
                del head[keys[-1]]
            else:
                head[keys[-1]] = to

        return change

    def array(name, to):
        def change(head, arrays):
            arrays[name] = to(arrays[name])

        return change

    def remove(name):
        return lambda head, arrays: arrays.pop(name)

    def add(name, value):
        return lambda head, arrays: arrays.update({name: value})

    wide = np.dtype([("a", "f8")])
    for name in (
        "version",
        "objective",
        "params",
        "kernel",
        "bias",
        "history",
        "certificate",
        "n_features_in",
        "notes",
    ):
        for value in (KeyError, None, [], 3.5):
            yield f"{name} {value}", "linear", header(name, to=value)
    yield "format", "linear", header("format", to="other")
    yield "version 0", "linear", header("version", to=0)
    yield "version true", "linear", header("version", to=True)
    yield "no columns", "linear", header("n_features_in", to=0)
    yield "names", "linear", header("feature_names", to=["a"])
    yield "names 2", "linear", header("feature_names", to=[1, 2, 3, 4])
    yield "kernel", "linear", header("kernel", "name", to="callable")
    yield "kernel list", "linear", header("kernel", "name", to=["linear"])
    yield "rbf without rows", "linear", header("kernel", "name", to="rbf")
    yield "rows", "csr", header("kernel", "rows", to="dense")
    yield "gamma", "csr", header("kernel", "params", "gamma", to="scale")
    yield "no gamma", "csr", header("kernel", "params", to={})
    yield "gap", "linear", header("certificate", "gap", to="small")
    yield "converged", "linear", header("certificate", "converged", to=1)
    yield "parts", "linear", header("certificate", "parts", to=[{}])
    yield "history", "linear", header("history", "gap", to=[1.0])
    yield "history types", "linear", header("history", "iteration", to=["1"])
    for name in ("classes", "coef", "dual_coef", "duals", "intercept", "norms", "support", "n_support"):
        yield f"no {name}", "linear", remove(name)
        yield f"{name} 3-D", "linear", array(name, lambda a: a[None, None])
        yield f"{name} records", "linear", array(name, lambda a: np.zeros(a.shape, wide))
        yield f"{name} complex", "linear", array(name, lambda a: a.astype(complex))
    for name in ("coef", "dual_coef", "duals", "intercept", "norms"):
        yield f"{name} whole numbers", "linear", array(name, lambda a: a.astype(int))
        yield f"{name} half", "linear", array(name, lambda a: a.astype(np.float16))
    for name in ("classes", "coef", "dual_coef", "duals", "intercept", "norms", "n_support"):
        yield f"{name} empty", "linear", array(name, lambda a: a[:0])
    yield "a column less", "linear", array("coef", lambda a: a[:, 1:])
    yield "another array", "linear", add("centre", np.zeros(4))
    yield "other classes", "linear", array("classes", lambda a: np.arange(3))
    yield "equal classes", "linear", array("classes", lambda a: a * 0)
    yield "classes backwards", "linear", array("classes", lambda a: a[::-1])
    yield "code points", "linear", array("classes", lambda a: np.array([1, 0x7FFFFFFF], np.uint32).view("<U1"))
    yield "support", "csr", array("support", lambda a: a[::-1])
    yield "support beyond", "csr", array("support", lambda a: a + 60)
    yield "support before", "csr", array("support", lambda a: a - a[0] - 1)
    yield "support repeated", "csr", array("support", lambda a: a * 0)
    yield "indices", "csr", array("rows_indices", lambda a: a + 4)
    yield "indices large", "csr", array("rows_indices", lambda a: a + 2**30)
    yield "indices negative", "csr", array("rows_indices", lambda a: a - 4)
    yield "indices backwards", "csr", array("rows_indices", lambda a: a[::-1])
    yield "indptr", "csr", array("rows_indptr", lambda a: a * 2)
    yield "indptr backwards", "csr", array("rows_indptr", lambda a: a[::-1])
    yield "indptr from 1", "csr", array("rows_indptr", lambda a: np.r_[1, a[1:]].astype(a.dtype))
    yield "indptr shifted", "csr", array("rows_indptr", lambda a: a + 1)
    yield "indptr wild", "csr", array("rows_indptr", lambda a: np.r_[0, a[1:-1] + 2**30, a[-1]].astype(a.dtype))
    yield "rows", "rbf, three classes", array("rows", lambda a: a[1:])
    yield "centre", "rbf, three classes", array("centre", lambda a: a[1:])


CHANGES = {name: (which, apply) for name, which, apply in changes()}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_on_purpose(change, files, tmp_path):
    which, apply = CHANGES[change]
    header, arrays = opened(files[which][0])
    apply(header, arrays)
    refused(tmp_path / "m.npz", sealed(header, arrays))


def test_newer_formats(files, tmp_path):
    header, arrays = opened(files["linear"][0])
    header |= {"version": 99, "written_by": "9.9", "arrays": "something else"}
    out = io.BytesIO()
    np.savez(out, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    text = refused(tmp_path / "m.npz", out.getvalue())
    assert "format 99" in text and "mdlearn 9.9" in text and "upgrade mdlearn" in text


class Bomb:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_foreign_files_and_pickles_are_refused_and_never_run(files, tmp_path):
    trap = tmp_path / "trap"
    bomb = np.array([Bomb(trap), Bomb(trap)], dtype=object)
    path = tmp_path / "m.npz"
    header, arrays = opened(files["linear"][0])
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    digest = np.zeros(32, np.uint8)
    for name in arrays:
        np.savez(path, header=text, digest=digest, **{**arrays, name: bomb})
        assert "pickled objects, which are never loaded" in refused(path)
    np.savez(path, header=bomb)
    assert "pickled" in refused(path)
    np.savez(path, header=text, digest=bomb, **arrays)
    assert "pickled" in refused(path)
    np.savez(path, x=np.ones(3))
    assert "not a model file" in refused(path)
    refused(path, pickle.dumps(Bomb(trap)))
    np.save(tmp_path / "one.npy", bomb)
    refused(path, (tmp_path / "one.npy").read_bytes())
    for content in (b"", b"PK", b"hello\n" * 100, b"\x89PNG\r\n\x1a\n", json.dumps({"a": 1}).encode()):
        refused(path, content)
    assert not trap.exists()
    pickle.loads(pickle.dumps(Bomb(trap))).close()
    assert trap.exists()  # the trap does work


def test_headers_that_are_no_json_and_arrays_that_claim_too_much(files, tmp_path):
    path = tmp_path / "m.npz"
    _, arrays = opened(files["linear"][0])
    for text in (b"", b"{", b"[]", b"\xff\xfe", b"[" * 100000, b'{"format": "mdlearn model"}'):
        np.savez(path, header=np.frombuffer(text, np.uint8), digest=np.zeros(32, np.uint8), **arrays)
        refused(path)
    # A shape of 10^15 in the npy header of an array: refused before memory is asked for.
    content = files["linear"][0]
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            body = old.read(info)
            if info.filename == "dual_coef.npy":
                changed = body.replace(b"(1, 60), }" + b" " * 14, b"(1, 999999999999999), }" + b" ")
                assert changed != body and len(changed) == len(body)
                body = changed
            new.writestr(info.filename, body)
    assert "incomplete" in refused(path)
    # The same member twice.
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "w") as new:
        with zipfile.ZipFile(io.BytesIO(content)) as old:
            for info in (*old.infolist(), old.getinfo("coef.npy")):
                new.writestr(info.filename, old.read(info))
    refused(path)
