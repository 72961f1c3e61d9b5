"""Whatever is given: a model of finite numbers, or one sentence of our own; never a message of NumPy's, never NaN."""

from __future__ import annotations

import linecache
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import mdlearn

PACKAGE = str(Path(mdlearn.__file__).parent)
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 3)), np.arange(12) % 2
NAN, INF = float("nan"), float("inf")


def broken(**parts):
    """A CSR matrix with arrays that do not fit."""
    A = sp.csr_matrix(X)
    for name, value in parts.items():
        setattr(A, name, value)
    return A


def with_entry(value):
    A = X.copy()
    A[3, 1] = value
    return A


NUMBERS = st.sampled_from([0, 1, 2, -1, 0.5, -0.5, 1e-300, 1e-12, 1e8, 1e160, 1e300, 10**400, NAN, INF, -INF, True,
                           None, "1", "auto", "", b"1", 1j, [], [1.0], np.float32(2), np.int8(3), np.array(1.0),
                           np.array([1.0]), {}, object(), lambda: 1, np.datetime64("2020-01-01")])  # fmt: skip
ROWS = [
    X, X.astype(np.float32), X.T, X[:0], X[:, :0], X[0], X[None], X.tolist(), with_entry(NAN), with_entry(INF),
    with_entry(1e139), with_entry(1e160), with_entry(1e-320), 1e100 * X, 1e-200 * X, X.astype(str), X.astype(object),
    X + 1j, None, 3, "abc", [[1, 2], [3]], [[]], [], {}, {"a": [1]}, sp.csr_matrix(X), sp.coo_matrix(X),
    sp.csc_array(X), sp.csr_matrix((12, 3)), sp.csr_matrix(X + 1j), broken(indices=np.full(36, 7)),
    broken(indptr=np.arange(13)),
    broken(data=np.full(36, NAN)), broken(data=np.ones(3)), np.zeros((12, 3)), np.ones((12, 1)), X @ X.T,
    np.eye(12) * -1, np.ma.masked_array(X, X > 0), X.astype(np.longdouble), X > 0, np.array(X.tolist(), dtype=">f4"),
    np.datetime64("2020-01-01") + np.zeros((12, 3), dtype="timedelta64[D]"), [object()] * 12, iter(X), range(12),
]  # fmt: skip
LABELS = [
    Y, Y.astype(float), Y.astype(str), Y == 1, Y.astype(object), Y.tolist(), tuple(Y), np.arange(12) % 3,
    np.zeros(12), Y[:, None], Y[:5], [], None, "ab" * 6, [None] * 12, np.where(Y, NAN, 0), np.where(Y, INF, 0),
    Y + 0.5, Y + 1j,
    np.array([1, "a"] * 6, dtype=object), [[0]] * 12, [(0, 1)] * 12, list(range(12)), Y.astype(np.uint64) + 2**63,
    {0, 1}, 5, np.array(["a", "b"] * 6, dtype="S1"), np.array([b"a", None] * 6), Y.astype("datetime64[D]"),
    sp.csr_matrix(Y),
]  # fmt: skip
WEIGHTS = [None, np.ones(12), 2, 0, -1, NAN, [1] * 12, [1] * 5, np.zeros(12), Y, 1 - Y, np.where(Y, NAN, 1), "a",
           ["a"] * 12, np.full(12, 1e-300), np.full(12, 1e300), np.full(12, 1e-320), np.ones((12, 1)),
           np.ones(12) * 1j, {},
           object(), np.r_[1e-200, 1e200, np.ones(10)]]  # fmt: skip
CLASS_WEIGHTS = [None, "balanced", "other", {}, {0: 2}, {0: -1}, {0: NAN}, {7: 1}, {0: "a"}, {0: 0}, [1, 2], 3,
                 {0: 1e300}, {0: 1e-300, 1: 1e300}, {"0": 1}]  # fmt: skip
WORDS = st.sampled_from([None, "", "x", "linear", "rbf", "poly", "precomputed", "free", "none", "regularized",
                         "auto", "ovr", "ovo", "joint", "fuzzy-min", 1, True, [], {}, object, np.array([1]),
                         len])  # fmt: skip
ARGUMENTS = {
    **dict.fromkeys(["solver", "kernel", "bias", "multiclass"], WORDS),
    "solver_options": st.sampled_from([None, {}, {"x": 1}, {1: 2}, [], "a", {"epochs": 1}, {"shrinking": 3}]),
    **dict.fromkeys(["tol", "max_iter", "random_state", "n_threads", "verbose", "time_limit"], NUMBERS),
    "callback": st.sampled_from([None, 3, "a", lambda state: None]),
    "warm_start": st.sampled_from([None, 3, "a", {}]),
    **dict.fromkeys(["gamma", "degree", "coef0", "C", "lambda1", "lambda2", "lambda0", "nu", "lam", "alpha",
                     "beta", "x"],
                    NUMBERS),
    **dict.fromkeys(["ridge", "basis_tol", "n_clusters", "n_landmarks", "sigma", "smoothness", "n_levels",
                     "n_restarts"],
                    NUMBERS),
    "basis": st.sampled_from(["all", "euclidean", "cholesky", "x", [0, 1], [0, 0], [50], [-1], [], 3, None, [0.5],
                              X]),
    **dict.fromkeys(["centers", "landmarks"], st.sampled_from([*ROWS[:14], X[:2], X[:1]])),
    "reduced": st.sampled_from([None, 2, 0, -1, 50, 2.5, [0, 1], [0, 0], [99], [], "a"]),
}  # fmt: skip


def on_purpose(error):
    """Raised by a `raise` of ours, with one sentence."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    file, text = trace.tb_frame.f_code.co_filename, str(error)
    line = linecache.getline(file, trace.tb_lineno).strip()
    assert file.startswith(PACKAGE) and line.startswith("raise"), f"{type(error).__name__} from {file}: {line}: {text}"
    assert isinstance(error, (ValueError, TypeError)) and text and "\n" not in text and len(text) < 500, repr(text)


def call(function, *args, **given_):
    """The answer, or None after an error of ours; warnings of NumPy's are errors in this suite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        try:
            return function(*args, **given_)
        except Exception as error:
            on_purpose(error)
            return None


def finite(model):
    held = [model.intercept_, model.duals, model._coef, model._alpha, model._norms]
    assert all(np.isfinite(a).all() for a in held if a is not None), model.certificate
    assert not np.isnan([model.certificate.objective, model.certificate.lower_bound, model.certificate.gap]).any()


@st.composite
def calls(draw):
    """Mostly plain arguments, and up to three of another kind."""
    given_ = {"objective": draw(st.sampled_from(mdlearn.list_objectives())), "X": X, "y": Y}
    pool = {"X": ROWS, "y": LABELS, "sample_weight": WEIGHTS, "class_weight": CLASS_WEIGHTS}
    for name in draw(st.lists(st.sampled_from([*pool, *pool, *ARGUMENTS]), max_size=3, unique=True)):
        given_[name] = draw(st.sampled_from(pool[name]) if name in pool else ARGUMENTS[name])
    return given_


@pytest.mark.slow
@examples(400)
@given(calls())
@pytest.mark.filterwarnings("error")
def test_fit(given_):
    model = call(mdlearn.fit, max_iter=given_.pop("max_iter", 200), time_limit=given_.pop("time_limit", 60), **given_)
    if model is not None:
        finite(model)
        answer = call(model.decision_function, given_["X"])
        assert answer is None or np.isfinite(answer).all()


MODELS = [
    mdlearn.fit("ldm", X, Y),
    mdlearn.fit("svm", X, np.arange(12) % 3, kernel="rbf"),
    mdlearn.fit("svm", X @ X.T, Y, kernel="precomputed"),
    mdlearn.fit("uldm", X, np.arange(12) % 3),
    mdlearn.fit("l3svm", X, Y, n_clusters=2),
    mdlearn.fit("mdlm", X.astype(np.float32), Y, ridge=0.1),
]


@examples(200)
@given(st.sampled_from(MODELS), st.sampled_from(ROWS), st.sampled_from(LABELS), st.sampled_from(WEIGHTS))
def test_models(model, rows, labels, weight):
    f = call(model.decision_function, rows)
    assert f is None or np.isfinite(f).all()
    for answer in (
        call(model.predict, rows),
        call(model.margins, rows, labels),
        call(model.score, rows, labels, weight),
    ):
        assert answer is None or np.asarray(answer).dtype.kind in "fibu"
    if model.probabilities:
        p = call(model.predict_proba, rows)
        assert p is None or np.allclose(p.sum(axis=1), 1.0)
