"""Models as ONNX, run by onnxruntime: the same decision values, labels and probabilities, without a warning."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from persistence_cases import data, gram
from regression_cases import Tube

import mdlearn

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")]


def outputs(made, X):
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": np.ascontiguousarray(X)})))


def agrees(model, X, opset=None, exact=1e-12):
    """Compare the outputs of the exported model with the model's own."""
    made = model.to_onnx(opset)
    onnx.checker.check_model(made, full_check=True)
    dtype = model.intercept_.dtype
    found, f = outputs(made, X.astype(dtype)), model.decision_function(X)
    scale = max(1.0, np.abs(f).max())
    close = exact if dtype == np.float64 else 2e-7
    assert found["scores"].dtype == dtype
    assert_allclose(found["scores"], f, rtol=0, atol=close * scale)
    margins = np.abs(f) if f.ndim == 1 else -np.diff(np.sort(f, axis=1)[:, -2:][:, ::-1], axis=1)[:, 0]
    clear = margins > 10 * exact * scale  # elsewhere rounding decides
    assert clear.mean() > 0.9
    assert_array_equal(found["label"][clear], model.predict(X)[clear])
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=10 * np.finfo(dtype).eps)
    return found


def rows(n=80, d=4, seed=9):
    return np.random.default_rng(seed).normal(size=(n, d)) * 1.5


KERNELS = {
    "linear": {},
    "rbf": {"kernel": "rbf"},
    "rbf, gamma": {"kernel": "rbf", "gamma": 0.3},
    "poly": {"kernel": "poly", "coef0": 1.0},
    "poly, 2": {"kernel": "poly", "degree": 2, "gamma": 0.1},
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ways", ["two", "ovr", "ovo"])
def test_kernels(kernel, ways, dtype):
    X, y = data(2 if ways == "two" else 3)
    multiclass = "auto" if ways == "two" else ways
    model = mdlearn.fit("ldm", X.astype(dtype), y, multiclass=multiclass, **KERNELS[kernel])
    agrees(model, rows().astype(dtype))


@pytest.mark.parametrize("objective", [name for name in mdlearn.list_objectives() if name != "svr"])
@pytest.mark.parametrize("classes", [2, 4])
def test_every_classifier(objective, classes):
    X, y = data(classes)
    given = {"n_clusters": 4, "n_landmarks": 3} if objective == "l3svm" else {}
    agrees(mdlearn.fit(objective, X, y, **given), rows())


@pytest.mark.parametrize("multiclass", ["fuzzy-min", "fuzzy-avg", "ovo"])
def test_pairs_of_classes(multiclass):
    X, y = data(4, m=80)
    agrees(mdlearn.fit("uldm", X, y, kernel="rbf", multiclass=multiclass), rows())


LANDMARKS = {
    "hard": {},
    "rbf": {"projection": "rbf", "sigma": 3.0},
    "soft": {"membership": "soft", "n_clusters": 7},
    "soft, few": {"membership": "soft", "n_clusters": 2, "projection": "rbf"},
    "tied": {"membership": "soft", "n_clusters": 6, "smoothness": 2.0},
    "levels": {"smoothness": 1.0, "n_levels": 2},
    "kernel": {"kernel": "rbf", "gamma": 0.2},
    "kernel, tied, soft": {"kernel": "poly", "degree": 2, "coef0": 1.0, "projection": "rbf", "membership": "soft"}
    | {"n_clusters": 6, "smoothness": 1.0},
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("case", LANDMARKS)
def test_landmarks(case, classes):
    X, y = data(classes, m=90)
    given = {"n_clusters": 3, "n_landmarks": 4, **LANDMARKS[case]}
    model = mdlearn.fit("l3svm", X + 3.0, y, **given)
    agrees(model, rows() + 3.0)


def test_clusters_of_no_width():
    X = np.repeat(np.eye(4) * 3.0, 6, axis=0)
    y = np.arange(24) % 3 == 0
    model = mdlearn.fit("l3svm", X, y, centers=np.eye(4) * 3.0, n_clusters=4, membership="soft", n_landmarks=2)
    assert model._map.spread == 0.0
    agrees(model, X)


NEWEST = min(onnx.defs.onnx_opset_version(), 23 if tuple(map(int, ort.__version__.split(".")[:2])) >= (1, 23) else 21)


@pytest.mark.parametrize("opset", [n for n in (13, 15, 17, 18, 19, 21, 22, 23) if n <= NEWEST])
def test_opsets(opset):
    X, y = data(3, m=90)
    model = mdlearn.fit("l3svm", X, y, n_clusters=6, n_landmarks=4, membership="soft", kernel="rbf")
    assert [one.version for one in model.to_onnx(opset).opset_import if one.domain == ""] == [opset]
    agrees(model, rows(), opset)
    agrees(mdlearn.fit("ldm", X, y, multiclass="fuzzy-min"), rows(), opset)
    agrees(mdlearn.fit("mlr", X, y), rows(), opset)
    agrees(mdlearn.fit("svm", X, y, kernel="poly", multiclass="ovo"), rows(), opset)


def test_precomputed_and_sparse_rows():
    X, y = data(3)
    agrees(mdlearn.fit("svm", gram(X), y, kernel="precomputed"), rows() @ X.T)
    agrees(mdlearn.fit("svm", sp.csr_matrix(X), y, kernel="rbf"), rows())
    agrees(mdlearn.fit("svm", sp.csr_array(X.astype(np.float32)), y), rows().astype(np.float32))


LABELS = [["b", "\u00fc"], ["a", "b", "c"], [3, 7], [True, False], [0.5, 2.0], np.array([0, 255], np.uint8)]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_labels(labels):
    X, codes = data(len(labels))
    y = np.array(labels)
    found = agrees(mdlearn.fit("svm", X, y[codes]), rows())["label"]
    assert found.dtype.kind == {"U": "O", "u": "i"}.get(y.dtype.kind, y.dtype.kind)
    if y.dtype.kind == "U":
        agrees(mdlearn.fit("svm", X, y.astype(object)[codes]), rows())


def test_labels_that_onnx_lacks():
    X, codes = data()
    for labels in (np.array([b"no", b"yes"]), np.array([1, 2**64 - 1], np.uint64), np.array([0, 1], "M8[s]")):
        with pytest.raises(ValueError, match="cannot be exported; fit with integers, booleans or strings"):
            mdlearn.fit("svm", X, labels[codes]).to_onnx()


def test_zero_is_the_second_label():
    model = mdlearn.fit("svm", np.array([[-1.0], [1.0]]), ["a", "b"], bias="none")
    assert outputs(model.to_onnx(), np.array([[0.0], [-0.0], [-1e-300]]))["label"].tolist() == ["b", "b", "a"]


@pytest.mark.parametrize("objective", ["svr", Tube])
def test_regression(objective):
    X, _ = data()
    model = mdlearn.fit(objective, X, X[:, 0] + 0.5)
    found = outputs(model.to_onnx(), rows())
    assert list(found) == ["value"]
    assert_allclose(found["value"], model.predict(rows()), rtol=0, atol=1e-12)


def test_rows_far_from_the_origin_and_one_row_at_a_time():
    X, y = data()
    model = mdlearn.fit("svm", X + 1e4, y, kernel="rbf", gamma=0.2)
    found = agrees(model, rows() + 1e4)
    session = ort.InferenceSession(model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    each = [session.run(["scores"], {"X": row[None] + 1e4})[0] for row in rows()]
    assert_allclose(np.concatenate(each), found["scores"], rtol=0, atol=1e-12)
    assert session.run(["label"], {"X": np.empty((0, 4))})[0].shape == (0,)


@pytest.mark.parametrize("far", [1e2, 1e4, 1e8])
def test_clusters_far_apart_in_units_of_the_kernel(far):
    X, y = data(m=90)
    X[:45] += far
    model = mdlearn.fit("svm", X, y, kernel="rbf", gamma=1.0)
    new = np.concatenate([rows(40) + far, rows(40)])
    agrees(model, np.concatenate([X, new]), exact=1e-11)


def test_what_cannot_be_exported_says_so():
    X, y = data()
    with pytest.raises(ValueError, match="callable kernel cannot be exported"):
        mdlearn.fit("svm", X, y, kernel=lambda A, B: A @ B.T).to_onnx()
    with pytest.raises(ValueError, match="callable projection cannot be exported"):
        mdlearn.fit("l3svm", X, y, projection=lambda A, B: A @ B.T, n_clusters=2).to_onnx()
    model = mdlearn.fit("svm", X, y)
    for opset in (12, 10_000, True, "18", 18.0):
        with pytest.raises(ValueError, match="target_opset needs to be an integer from 13 to"):
            model.to_onnx(opset)


@pytest.mark.slow
def test_models_beyond_the_limit_of_protobuf(monkeypatch):
    from mdlearn.model.onnx import graph

    monkeypatch.setattr(graph, "CONSTANT_BYTES", 1000)
    X, y = data()
    with pytest.raises(ValueError, match="which an ONNX file cannot hold"):
        mdlearn.fit("svm", X, y, kernel="rbf").to_onnx()
    wide = sp.csr_matrix((np.ones(60), (np.arange(60), np.arange(60) * 10**4)), shape=(60, 10**6))
    model = mdlearn.fit("svm", wide, y, kernel="rbf", gamma=1.0)
    tracemalloc.start()
    with pytest.raises(ValueError, match="which an ONNX file cannot hold"):
        model.to_onnx()
    assert tracemalloc.get_traced_memory()[1] < 10_000_000  # as dense rows 480 MB
    tracemalloc.stop()


def test_without_onnx(monkeypatch):
    X, y = data()
    model = mdlearn.fit("svm", X, y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "mdlearn\[onnx\]"'):
        model.to_onnx()


def test_onnxruntime_has_nothing_to_say(tmp_path):
    """Its warnings go to the error stream, past Python."""
    X, y = data(3)
    cases = [{}, {"kernel": "rbf"}, {"kernel": "poly"}, {"multiclass": "ovo"}]
    models = [mdlearn.fit("ldm", X, y, **given) for given in cases]
    models += [mdlearn.fit("l3svm", X, y, n_clusters=6, n_landmarks=3, membership="soft"), mdlearn.fit("mlr", X, y)]
    for i, model in enumerate(models):
        (tmp_path / f"{i}.onnx").write_bytes(model.to_onnx().SerializeToString())
    code = (
        "import sys, numpy, onnxruntime as ort\n"
        "for path in sys.argv[1:]:\n"
        "    session = ort.InferenceSession(path, providers=['CPUExecutionProvider'])\n"
        "    session.run(None, {'X': numpy.ones((5, 4))})\n"
    )
    paths = [str(path) for path in tmp_path.iterdir()]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
