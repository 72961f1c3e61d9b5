"""No model file, however damaged or made on purpose, does anything but load or raise."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from persistence_cases import CASES, fitted, members, opened, sealed

import mdlearn

pytestmark = pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")


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


@pytest.mark.slow
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


def test_a_resealed_file_loads(files, tmp_path):
    """`sealed` makes valid files, so the refusals below are about what they change."""
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

    def overflowing(ends):
        return lambda a: np.concatenate([a[:1], [ends.max, ends.min, -1], a[4:]]).astype(ends.dtype)

    def empty_rows(ends):
        def change(head, arrays):
            arrays["rows_data"], arrays["rows_indices"] = arrays["rows_data"][:0], arrays["rows_indices"][:0]
            arrays["rows_indptr"] = overflowing(ends)(0 * arrays["rows_indptr"])

        return change

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
    yield "history", "linear", header("history", "gap", to=[1.0] * 99)
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
    for kind in (np.int32, np.int64):  # differences of neighbours overflow, and rise
        ends = np.iinfo(kind)
        yield f"support overflows {kind}", "csr", array("support", overflowing(ends))
        yield f"indptr overflows {kind}", "csr", empty_rows(ends)
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
