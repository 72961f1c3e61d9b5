"""Files of every format that mdlearn ever wrote load, and predict what they did.

files/old_models.json holds files that the code of the named commits wrote (each checked out and built by itself): the
bytes, compressed and as base 85, and the decision values that this code printed. 83330cb wrote format 1, 617714a and
f34d2a3 wrote format 2, 0f48eef format 3, 07bed95 format 4. The rows are those of `rows` below; labels were
i * 5 % 12 // 6, or // 4.
"""

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import mdlearn
from mdlearn.model.file.schema import VERSION

OLD = json.loads((Path(__file__).parent / "old_models.json").read_text(encoding="ascii"))


def rows(kind):
    i = np.arange(12)
    X = np.column_stack([np.sin(3.0 * i), np.cos(5.0 * i) + i / 8])
    if kind == "csr":
        return sp.csr_matrix(np.where(np.abs(X) > 0.4, X, 0.0).astype(np.float32))
    return X @ X.T if kind == "gram" else X


def content(name):
    return zlib.decompress(base64.b85decode(OLD[name]["file"]))


def test_every_old_format_is_there():
    assert {case["version"] for case in OLD.values()} >= set(range(1, VERSION))


@pytest.mark.parametrize("name", OLD)
def test_an_old_file_predicts_what_it_did(name, tmp_path):
    case, path = OLD[name], tmp_path / "m.npz"
    path.write_bytes(content(name))
    with np.load(path) as file:
        header = json.loads(file["header"].tobytes())
    assert header["version"] == case["version"]
    model, X = mdlearn.load(path), rows(case["rows"])
    f = model.decision_function(X)
    values = np.array([float.fromhex(text) for text in case["values"]])
    assert_allclose(f.ravel(), values, rtol=0, atol=1e-13 * np.abs(values).max())
    assert model.certificate.converged and model.certificate.gap <= 2e-6
    assert model.history and model.history[-1].gap <= model.history[0].gap
    assert model.params.items() >= header["params"].items()
    codes = np.arange(12) * 5 % 12 // (12 // len(model.classes_))
    assert model.score(X, model.classes_[codes]) == np.mean(model.predict(X) == model.classes_[codes])
    model.save(path)  # in today's format
    again = mdlearn.load(path)
    assert_array_equal(again.decision_function(X), f, strict=True)
    assert again.certificate == model.certificate and again.params == model.params
