"""Archives made to mislead a reader: refused before much memory is taken, with a message that says what is wrong."""

import gzip
import io
import json
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from model_damage import packed
from persistence_cases import CASES, fitted, opened, sealed

import mdlearn
from mdlearn.errors import InsufficientMemory

pytestmark = pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
SMALL = 3_000_000
"""Bytes that refusing a small file may take."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Bytes of some model files."""
    soft = {"objective": "l3svm", "n_clusters": 3, "n_landmarks": 3, "projection": "rbf", "membership": "soft"}
    cases = {"linear": {}, "rbf": {"kernel": "rbf"}, "poly": CASES["poly"], "soft": {**soft, "smoothness": 1.0}}
    path = tmp_path_factory.mktemp("models") / "m.npz"
    made = {}
    for name, given in cases.items():
        fitted(**given)[0].save(path)
        made[name] = path.read_bytes()
    return made


def refused(tmp_path, content, kind=ValueError):
    """The message without the path; loading took little memory."""
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(kind) as caught:
            mdlearn.load(path)
        assert tracemalloc.get_traced_memory()[1] < SMALL
    finally:
        tracemalloc.stop()
    text = str(caught.value)
    assert text.startswith(f"{path} cannot be loaded: ") and len(text) < 1000
    return text.removeprefix(f"{path} cannot be loaded: ")


def test_other_kinds_of_files(files, tmp_path):
    assert refused(tmp_path, b"") == "it is empty"
    for protocol in (2, 5):
        assert refused(tmp_path, pickle.dumps({"a": 1}, protocol)).startswith(
            "it is a pickle, which could run any code"
        )
    png = b"\x89PNG\r\n\x1a\n" + bytes(1000)
    for content in (b"\x00" * 5000, png, gzip.compress(files["linear"]), b"%PDF-1.7\n", pickle.dumps(1, 0), b"PK"):
        assert refused(tmp_path, content) == "it is not a model file of mdlearn"
    out = io.BytesIO()
    np.savez(out, weights=np.ones(3))
    assert refused(tmp_path, out.getvalue()) == "it is a zip archive, but not a model file of mdlearn"


def test_a_pickle_of_joblib(tmp_path):
    joblib = pytest.importorskip("joblib")
    joblib.dump(fitted()[0], tmp_path / "m.joblib")
    assert "pickle" in refused(tmp_path, (tmp_path / "m.joblib").read_bytes())


@pytest.mark.slow
def test_bombs_of_compression(files, tmp_path):
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as archive:
            archive.writestr("header.npy", bytes(50_000_000))
        assert "compressed" in refused(tmp_path, out.getvalue())


def test_members_that_overlap_are_not_looked_at(files, tmp_path):
    """A directory may name the same bytes a million times: this reader goes from member to member."""
    content = files["linear"]
    start = struct.unpack("<I", content[-6:-2])[0]
    entry = content[start : start + 46 + len("header.npy")]
    directory = entry * 100_000
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(directory), start, 0)
    assert "directory is damaged" in refused(tmp_path, content[:start] + directory + end)
    # The same in what is read: the second member would begin within the first.
    size = struct.unpack("<Q", content[30 + 10 + 4 : 30 + 10 + 12])[0]
    shorter = content[: 30 + 10 + 4] + struct.pack("<QQ", size - 200, size - 200) + content[30 + 10 + 20 :]
    assert refused(tmp_path, shorter) == "its array 'header' is incomplete"


def test_flags_and_sizes(files, tmp_path):
    content = bytearray(files["linear"])
    content[6] |= 1
    assert "encrypted" in refused(tmp_path, bytes(content))
    content[6] = 8  # sizes that follow the content
    assert "encrypted" in refused(tmp_path, bytes(content))
    content = bytearray(files["linear"])
    content[44:60] = struct.pack("<QQ", 2**63, 2**63)
    assert refused(tmp_path, bytes(content)) == "its array 'header' is incomplete"


def test_a_file_with_holes_of_a_terabyte(files, tmp_path):
    header, _ = opened(files["linear"])
    n = 2**37
    text = json.dumps({**header, "arrays": {"coef": ["<f8", [n]]}}).encode()
    path = tmp_path / "m.npz"
    path.write_bytes(packed(header, {"coef": np.zeros(1)}, text))
    with open(path, "r+b") as file:
        try:
            file.truncate(8 * n)
        except OSError:
            pytest.skip("no files with holes here")
    with pytest.raises(InsufficientMemory, match="this model file needs"):
        mdlearn.load(path)


DESCRIPTIONS = [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999999,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 3000 + "), }",
    "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<U9999999999', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': '<f8', 'fortran_order': __import__('os').system('x'), 'shape': (1,), }",
    "-" * 9000 + "1",
    "(" * 9000,
    "",
]


@pytest.mark.parametrize("text", DESCRIPTIONS, ids=lambda text: text[:60])
@pytest.mark.filterwarnings("error")
def test_descriptions_of_arrays(text, files, tmp_path):
    """numpy's reader would evaluate them: nothing here does."""
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text.encode() + b"\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("header.npy", head + bytes(64))
    refused(tmp_path, out.getvalue())


HEADERS = {
    "twice": ('"bias":', '"bias": "none", "bias":', "gives a name twice"),
    "twice, within": ('"notes": {}', '"notes": {"a": 1, "a": 2}', "gives a name twice"),
    "NaN": ('"notes": {}', '"notes": {"a": NaN}', "holds NaN, which JSON lacks"),
    "Infinity": ('"notes": {}', '"notes": {"a": -Infinity}', "holds -Infinity, which JSON lacks"),
    "a number": ('"notes": {}', '"notes": {"a": {"number": "5"}}', "a number that is none"),
    "deep": ('"notes": {}', f'"notes": {"[" * 100_000}{"]" * 100_000}', "damaged"),
    "long": ('"notes": {}', f'"notes": {"9" * 10_000}', "damaged"),
    "long name": ('"bias": "', f'"bias": "{"x" * 100_000}', "where one of none, regularized, free is needed"),
    "newer": ('"version": 5', '"version": 6', "format 6"),
    "newer by whom": ('"version": 5', '"version": 6, "x": "' + "y" * 50_000 + '"', "upgrade mdlearn"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_texts_of_headers(case, files, tmp_path):
    old, new, told = HEADERS[case]
    header, arrays = opened(files["linear"])
    header["arrays"] = {name: [a.dtype.str, list(a.shape)] for name, a in arrays.items()}
    text = json.dumps(header).replace(old, new)
    assert text != json.dumps(header)
    message = refused(tmp_path, packed(header, arrays, text.encode()))
    assert told in message or len(message) > 500


def test_who_wrote_a_newer_file_is_not_told_at_length(files, tmp_path):
    header, arrays = opened(files["linear"])
    message = refused(tmp_path, sealed({**header, "version": 9, "written_by": "\x1b[2J" * 100_000}, arrays))
    assert "format 9" in message and "\x1b" not in message


def _numbers(name, value):
    def change(header, arrays):
        arrays[name] = np.array(arrays[name])
        arrays[name].flat[0] = value

    return change


def _map(name, value):
    return lambda header, arrays: header["map"].update({name: value})


def _kernel(name, value):
    return lambda header, arrays: header["kernel"]["params"].update({name: value})


def _extra(name):
    def change(header, arrays):
        header["extras"][name], arrays[f"extra_{name}_0"] = None, np.ones(2)

    return change


CHANGES = {
    **{f"{name} NaN": ("rbf", _numbers(name, np.nan)) for name in ("dual_coef", "rows", "centre")},
    **{f"{name} inf": ("rbf", _numbers(name, np.inf)) for name in ("dual_coef", "rows", "centre")},
    **{f"{name} NaN": ("linear", _numbers(name, np.nan)) for name in ("coef", "intercept", "norms", "duals")},
    "fewer supports": ("linear", _numbers("n_support", 0)),
    "negative supports": ("linear", _numbers("n_support", -5)),
    **{f"gamma {i}": ("rbf", _kernel("gamma", v)) for i, v in enumerate((0.0, -1.0, 10**400, True))},
    **{f"degree {v}": ("poly", _kernel("degree", v)) for v in (0, 2.5, -1, None)},
    "coef0": ("poly", _kernel("coef0", -1.0)),
    **{f"spread {i}": ("soft", _map("spread", v)) for i, v in enumerate((-1.0, "x", True, 10**400))},
    **{f"map gamma {v}": ("soft", _map("gamma", v)) for v in (0.0, -1.0, None)},
    "projection": ("soft", _map("projection", "os.system")),
    "mix": ("soft", lambda h, a: a.update(map_mix=a["map_mix"][:2])),
    "mix NaN": ("soft", _numbers("map_mix", np.nan)),
    "centres": ("soft", _numbers("map_centers", np.inf)),
    **{f"extra {name!r}": ("linear", _extra(name)) for name in ("__deepcopy__", "__array__", "_rows", "predict")},
    **{f"extra {name!r}": ("linear", _extra(name)) for name in ("coef_", "a b", "")},
}


@pytest.mark.parametrize("case", CHANGES)
def test_values_that_predictions_could_not_use(case, files, tmp_path):
    which, change = CHANGES[case]
    header, arrays = opened(files[which])
    change(header, arrays)
    refused(tmp_path, sealed(header, arrays))
