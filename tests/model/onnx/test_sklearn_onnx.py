"""The estimators within skl2onnx: alone, in pipelines and in what wraps them."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from persistence_cases import data

pytest.importorskip("skl2onnx")
ort = pytest.importorskip("onnxruntime")
estimators = pytest.importorskip("mdlearn.sklearn")

import onnx  # noqa: E402
from skl2onnx import to_onnx  # noqa: E402
from sklearn.base import ClassifierMixin, clone  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.ensemble import StackingClassifier, VotingClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from mdlearn.sklearn_onnx import register_converters  # noqa: E402

pytestmark = [
    pytest.mark.extras,
    pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
CLASSIFIERS = [n for n in estimators.__all__ if issubclass(getattr(estimators, n), ClassifierMixin)]


@pytest.fixture(autouse=True, scope="module")
def registered():
    register_converters()
    register_converters()


def made(name):
    given = {"n_clusters": 3, "n_landmarks": 3} if name == "L3SVMClassifier" else {}
    return getattr(estimators, name)(**given)


def run(converted, X):
    onnx.checker.check_model(converted, full_check=True)
    session = ort.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: X})


def expected(estimator, X):
    """Probabilities, or decision values of every class."""
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)
    f = estimator.decision_function(X)
    return np.column_stack([-f, f]) if f.ndim == 1 else f


def agrees(estimator, X, close, **given):
    label, scores = run(to_onnx(estimator, X[:1], options={"zipmap": False}, **given), X)
    wanted = expected(estimator, X)
    assert scores.dtype == X.dtype
    assert_allclose(scores, wanted, rtol=0, atol=close * max(1.0, np.abs(wanted).max()))
    two = np.sort(wanted, axis=1)
    clear = two[:, -1] - two[:, -2] > 4 * close * max(1.0, np.abs(wanted).max())
    assert clear.mean() > 0.9
    assert_array_equal(label[clear], estimator.predict(X)[clear])


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_classifier(name, classes):
    X, y = data(classes)
    agrees(made(name).fit(X, y), X, 1e-12)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_pipelines_of_both_types(name):
    X, y = data(3)
    pipe = make_pipeline(StandardScaler(), made(name)).fit(X, np.array(["a", "b", "c"])[y])
    agrees(pipe, X, 1e-12)
    X = X.astype(np.float32)
    agrees(clone(pipe).fit(X, y), X, 1e-5)


@pytest.mark.parametrize("opset", [13, 18, 21])
def test_kernels_and_opsets(opset):
    X, y = data(3)
    for given in ({"kernel": "rbf"}, {"kernel": "poly", "degree": 2}, {"multiclass": "ovo"}):
        agrees(estimators.LDMClassifier(**given).fit(X, y), X, 1e-12, target_opset=opset)


@pytest.mark.parametrize(
    "given",
    [{}, {"projection": "rbf"}, {"n_clusters": 6, "membership": "soft"}, {"n_clusters": 3, "projection": "rbf"}],
)
def test_landmarks(given):
    X, y = data(m=90)
    transformer = estimators.LandmarkTransformer(n_landmarks=3, **given).fit(X)
    (found,) = run(to_onnx(transformer, X[:1]), X)
    assert_allclose(found, transformer.transform(X), rtol=0, atol=1e-12)
    agrees(make_pipeline(StandardScaler(), transformer, estimators.LDMClassifier()).fit(X, y), X, 1e-12)


def test_maps_of_labels_and_raw_scores():
    X, y = data(3)
    clf = estimators.MLRClassifier().fit(X, np.array(["a", "b", "c"])[y])
    rows = X.astype(np.float32)  # maps of doubles are not there in ONNX
    label, maps = run(to_onnx(clf, rows[:1]), rows)
    assert list(label) == list(clf.predict(rows)) and sorted(maps[0]) == ["a", "b", "c"]
    assert_allclose([one["b"] for one in maps], clf.predict_proba(rows)[:, 1], atol=1e-6)
    options = {id(clf): {"zipmap": False, "raw_scores": True}}
    assert_allclose(run(to_onnx(clf, X[:1], options=options), X)[1], clf.decision_function(X), atol=1e-12)


def test_labels():
    X, y = data()
    for labels in ([False, True], [3, 9], [1.0, 2.0]):
        clf = estimators.SVMClassifier().fit(X, np.array(labels)[y])
        label, _ = run(to_onnx(clf, X[:1], options={"zipmap": False}), X)
        assert label.dtype == np.int64 and label.tolist() == clf.predict(X).astype(int).tolist()


def test_within_other_estimators():
    X, y = data(3, m=150)
    inner = estimators.MLRClassifier()
    cases = [
        GridSearchCV(make_pipeline(StandardScaler(), inner), {"mlrclassifier__lam": [1e-3, 1e-1]}, cv=2),
        VotingClassifier([("a", inner), ("b", LogisticRegression())], voting="soft", flatten_transform=False),
        StackingClassifier([("a", inner), ("b", LogisticRegression())], cv=2),
        CalibratedClassifierCV(inner, cv=2),
        make_pipeline(ColumnTransformer([("s", StandardScaler(), [0, 2]), ("p", "passthrough", [3])]), inner),
    ]
    for case in cases:
        agrees(case.fit(X, y), X, 1e-6)


def test_errors():
    X, y = data()
    clf = estimators.SVMClassifier(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(ValueError, match="callable kernel cannot be exported"):
        to_onnx(clf, X[:1])
    clf = estimators.SVMClassifier().fit(X, y)
    with pytest.raises(ValueError, match="the input has 3 columns; this SVMClassifier was fitted on 4"):
        to_onnx(clf, X[:1, :3])
    with pytest.raises(ValueError, match="target_opset >= 13; got 12"):
        to_onnx(clf, X[:1], target_opset=12)


def test_the_module_loads_nothing_before_it_is_asked_to():
    code = (
        "import sys, mdlearn.sklearn_onnx as module\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules} & {'onnx', 'skl2onnx', 'sklearn'}))\n"
        "sys.modules['skl2onnx'] = None\n"
        "try:\n    module.register_converters()\nexcept ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == ["", 'converting estimators needs skl2onnx; pip install "mdlearn[onnx]"']
