"""Feature maps: the same problem as on features made by hand; models, files and errors that go with them."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from faulty_maps import Curved, Squares, with_map
from numpy.testing import assert_array_equal

import mdlearn
from mdlearn.data.features import feature_map
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.landmark_map import LandmarkMap
from mdlearn.data.rows.arrays import check_rows
from mdlearn.model.file import loading, persistence
from mdlearn.numerics import memory
from mdlearn.objectives.svm import SVM
from mdlearn.testing import CHECKS

EXAMPLE = re.search(
    r"<!-- example: features -->\n```python\n(.*?)```\n",
    (Path(__file__).resolve().parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8"),
    re.DOTALL,
).group(1)


def sample(m=120, d=3, k=2):
    rng = np.random.default_rng(4)
    X = np.where(rng.random((m, d)) < 0.7, rng.standard_normal((m, d)), 0.0)
    y = np.argmax(np.square(X[:, :k]) + 0.3 * rng.standard_normal((m, k)), axis=1)
    return X, y, rng.integers(0, 4, m)


def by_hand(X):
    scale = 1.0 + np.arange(X.shape[1])
    return np.hstack([X / scale, X**2 / scale])


def loaded(model, path, objective):
    """Through a file, with `objective` as the one that is installed."""
    model.save(path)
    return loading.load_model_file(path, lambda kind, name: objective)[0]


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check):
    check(Curved)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix])
def test_the_model_is_that_of_features_made_by_hand(made, dtype, k):
    X, y, counts = sample(k=k)
    X = X.astype(dtype)
    settings = {"sample_weight": counts, "C": 2.0, "bias": "regularized"}
    tol = 1e-12 if dtype == np.float64 else 1e-5
    model = mdlearn.fit(Curved, made(X), y, tol=tol, **settings)
    plain = mdlearn.fit(SVM, by_hand(X.astype(np.float64)), y, tol=1e-12, multiclass="ovr", **settings)
    close = 1e-11 if dtype == np.float64 else 1e-4
    assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=close)
    f, g = model.decision_function(made(X)), plain.decision_function(by_hand(X.astype(np.float64)))
    np.testing.assert_allclose(f, g, atol=1e-5 if dtype == np.float64 else 3e-2)
    assert model.coef_.shape == (1 if k == 2 else 3, 6) and model.coef_.dtype == dtype
    assert_array_equal(model.scale_, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("first", [1, 7, 64])
def test_blocks_of_rows_make_the_same_features(first, monkeypatch):
    X = sample()[0]
    monkeypatch.setattr(feature_map, "FIRST_BLOCK_ROWS", first)
    monkeypatch.setattr(feature_map, "BLOCK_ENTRIES", 50)
    place = Squares(1.0 + np.arange(3))
    for A in (X, sp.csr_matrix(X), X.astype(np.float32), sp.csr_matrix(X.astype(np.float32))):
        rows, steps, work = check_rows(A), 0, place.rows(check_rows(A))
        while True:
            try:
                steps += next(work) is None
            except StopIteration as done:
                made = done.value
                break
        assert steps > 5 and made.sparse == rows.sparse and made.dtype == rows.dtype
        np.testing.assert_allclose(made.block(slice(None)), by_hand(X), rtol=1e-6, atol=1e-6)
        coef = np.arange(12.0).reshape(2, 6)
        np.testing.assert_allclose(place.scores(rows, coef), by_hand(X) @ coef.T, atol=1e-4)


@pytest.mark.parametrize("k", [2, 3])
def test_a_file_gives_the_same_model_back(k, tmp_path):
    X, y, _ = sample(k=k)
    model = mdlearn.fit(Curved, X, y)
    again = loaded(model, tmp_path / "m.npz", Curved)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_array_equal(again.coef_, model.coef_, strict=True)
    assert_array_equal(again.scale_, model.scale_, strict=True)
    again.save(tmp_path / "n.npz")
    assert (tmp_path / "m.npz").read_bytes() == (tmp_path / "n.npz").read_bytes()
    model.predict(X)
    assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))
    with np.load(tmp_path / "m.npz") as file:
        header = json.loads(file["header"].tobytes())
        # One copy of the array; of the class there is no word.
        assert [name for name in file if "scale" in name] == ["map_scale"]
        assert header["objective"] == "curved" and "Squares" not in json.dumps(header)


def refused(path, lookup):
    with pytest.raises(ValueError) as caught:
        loading.load_model_file(path, lookup)
    text = str(caught.value)
    assert text.startswith(f"{path} cannot be loaded: ") and "\n" not in text
    return text


def test_what_a_file_needs_and_does_not_find(tmp_path):
    X, y, _ = sample()
    path = tmp_path / "m.npz"
    mdlearn.fit(Curved, X, y).save(path)
    with pytest.raises(ValueError, match="it needs the objective 'curved' of a plugin; objective 'curved' is unknown"):
        mdlearn.load(path)
    assert "it needs a feature map, and the objective 'svm' has none" in refused(path, lambda *_: SVM)
    other = with_map(type("Wider", (Squares,), {"columns": 4}))
    assert "its features are made of 4 columns, and X had 3" in refused(path, lambda *_: other)
    wide = with_map(type("Longer", (Squares,), {"width": 7}))
    assert "its array 'coef' has dtype float64 and shape (1, 6)" in refused(path, lambda *_: wide)
    strict = with_map(type("Strict", (Squares,), {"decoded": classmethod(lambda cls, values: values["no"])}))
    assert "damaged, incomplete or not a model file" in refused(path, lambda *_: strict)


def test_what_cannot_be_saved_says_so(tmp_path):
    X, y, _ = sample()

    class Code(Squares):
        def encoded(self):
            return {"scale": self.scale, "function": len}

    with pytest.raises(ValueError, match="map 'function' cannot be saved"):
        mdlearn.fit(with_map(Code), X, y).save(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


RETURNED = {
    "shape": (lambda F: F[:, 1:], r"what Wrong.features returned has shape \(64, 5\); it needs to be \(64, 6\)"),
    "rows": (lambda F: F[1:], r"shape \(63, 6\); it needs to be \(64, 6\)"),
    "nan": (lambda F: F * np.nan, "what Wrong.features returned contains NaN or infinity"),
    "text": (lambda F: F.astype(str), "what Wrong.features returned has dtype"),
    "flat": (lambda F: F[:, 0], r"what Wrong.features returned has 1 dimension"),
}


@pytest.mark.parametrize("fault", RETURNED)
def test_what_features_may_not_return(fault):
    change, words = RETURNED[fault]

    class Wrong(Squares):
        def features(self, A):
            return change(super().features(A))

    X, y, _ = sample()
    with pytest.raises((ValueError, TypeError), match=words):
        mdlearn.fit(with_map(Wrong), X, y)


def test_features_that_overflow_float32():
    X, y, _ = sample()
    with pytest.raises(ValueError, match=r"^features made of X have size 5.81e\+60, beyond float32; scale"):
        mdlearn.fit(Curved, (X * 1e30).astype(np.float32), y)


def test_memory_is_asked_for_after_the_first_rows(monkeypatch):
    X = sample()[0]
    monkeypatch.setattr(memory, "NEGLIGIBLE_BYTES", 0.0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 2 * 8.0 * 120 * 6 - 1)
    for A in (X, sp.csr_matrix(np.ones((120, 3)))):
        with pytest.raises(mdlearn.InsufficientMemory, match="6 features of 120 rows"):
            list(Squares(np.ones(3)).rows(check_rows(A)))
    monkeypatch.setattr(memory, "available_bytes", lambda: 2 * 8.0 * 120 * 6)
    list(Squares(np.ones(3)).rows(check_rows(X)))


def test_pairs_of_classes_have_no_map_in_common():
    class Pairs(Curved):
        multiclass: ClassVar = ("ovr", "ovo")

    X, y, _ = sample()
    with pytest.raises(TypeError, match="a model has one map, not one per pair of classes; declare multiclass"):
        mdlearn.fit(Pairs, X, y)
    with pytest.raises(ValueError, match="Squares makes explicit rows; kernel 'rbf' has none"):
        Squares(np.ones(3)).over(Kernel("rbf"))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("settings", [{}, {"projection": "rbf"}, {"membership": "soft", "smoothness": 1.0}])
def test_files_of_format_2_still_load(settings, kernel, tmp_path, monkeypatch):
    """What the version before wrote: centres and landmarks as attributes, the rest of the map in fields of its own."""
    X, y, _ = sample()
    monkeypatch.setattr(LandmarkMap, "turned", lambda place: place)  # coefficients were those of the projections
    model = mdlearn.fit("l3svm", X, y, n_clusters=4, n_landmarks=5, kernel=kernel, **settings)
    place, encode = model._map, persistence.encode_model
    projection = {"name": place.projection.name, "params": place.projection.params}
    fields = {"map_centre": place.projection.centre, "map_mix": place.mix}

    def old(model, notes):
        header, arrays = encode(replace(model, _map=None), notes)
        arrays |= {name: array for name, array in fields.items() if array is not None}
        header |= {"version": 2, "map": {"projection": projection, "width": place.spread}}
        header["arrays"] = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        return header, arrays

    monkeypatch.setattr(persistence, "encode_model", old)
    model.save(tmp_path / "old.npz")
    again = mdlearn.load(tmp_path / "old.npz")
    assert isinstance(again._map, LandmarkMap) and again._map.spread == place.spread
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert_array_equal(again.centers_, model.centers_)


@pytest.mark.slow
def test_the_example_of_the_documentation(tmp_path):
    space = {}
    exec(compile(EXAMPLE, "features", "exec"), space)
    WaveSVM = space["WaveSVM"]
    for check in CHECKS:
        check(WaveSVM)
    X, y, _ = sample(300)
    model = mdlearn.fit(WaveSVM, X, y, n_waves=2000, C=3.0, tol=1e-8)
    exact = mdlearn.fit("svm", X, y, kernel="rbf", gamma=0.5, C=3.0, tol=1e-8)
    # The kernel's entries are met to about 1/sqrt(n_waves).
    assert model.certificate.objective == pytest.approx(exact.certificate.objective, rel=0.05)
    again = loaded(model, tmp_path / "m.npz", WaveSVM)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
