"""What `asv_bench/interrupts.py` interrupts: fits of every engine, a million rows and kernels, and what follows."""

import functools
import os
import tempfile
from dataclasses import dataclass, field

import numpy as np

import mdlearn

MILLION, WIDTH = 1_000_000, 33
HARD = {"C": 1e3, "gamma": 0.02}


@functools.lru_cache(2)
def dense(m=MILLION, d=WIDTH, k=2, dtype="float64", order="C"):
    """Overlapping classes around points of their own."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, k, m)
    X = rng.standard_normal((m, d))
    X += rng.standard_normal((k, d))[codes] * 0.4
    return np.asarray(X, dtype=dtype, order=order), codes


@functools.lru_cache(1)
def sparse(m=MILLION, d=100_000, each=30):
    """Rows of `each` entries at random places, labels by a plane with noise."""
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    places = np.minimum(d - 1, (d * rng.random(m * each) ** 3).astype(np.int32))
    X = csr_matrix((rng.standard_normal(m * each), places, np.arange(m + 1, dtype=np.int32) * each), shape=(m, d))
    X.sum_duplicates()
    f = X @ rng.standard_normal(d) + rng.standard_normal(m)
    return X, (f > 0).astype(np.intp)


@dataclass(frozen=True)
class Fit:
    """A fit as a case; `rows` makes X and y, `value` is the objective at (w, b) by another formula, where it is set."""

    name: str
    objective: str
    rows: object
    given: dict = field(default_factory=dict)
    value: object = None
    limited = True

    def prepare(self):
        """Return what is to be called, with further arguments of `fit`."""
        X, y = self.rows()
        return lambda **limits: mdlearn.fit(self.objective, X, y, **{**self.given, **limits})

    def judged(self, model):
        """The certified objective over that of the other formula, less 1; None where there is no other one."""
        if self.value is None:
            return None
        X, y = self.rows()
        sign = np.where(y == model.classes_[1], 1.0, -1.0)
        w, b = model.coef_[0].astype(np.float64), float(model.intercept_[0])
        square = w @ w + (b * b if model.bias == "regularized" else 0.0)
        return model.certificate.objective / self.value(square, sign * (X @ w + b), model.params) - 1.0


@dataclass(frozen=True)
class After:
    """What is done with a fitted model."""

    name: str
    make: object
    limited = False

    def prepare(self):
        """Return what is to be called."""
        return self.make()

    def judged(self, result):
        """Nothing is certified here."""
        return None


def _svm(square, z, p):
    return 0.5 * square + p["C"] * np.maximum(0.0, 1.0 - z).sum()


def _ldm(square, z, p):
    return _svm(square, z, p) + 2.0 * p["lambda1"] * z.var() - p["lambda2"] * z.mean()


def _lsvm(square, z, p):
    return 0.5 * square + 0.5 * p["nu"] * (np.maximum(0.0, 1.0 - z) ** 2).sum()


def _lssvm(square, z, p):
    return 0.5 * square + 0.5 * p["C"] * ((1.0 - z) ** 2).sum()


def _l2lr(square, z, p):
    return p["lam"] * square + np.logaddexp(0.0, -z).mean()


def _kernel(m):
    return functools.partial(dense, m, 20)


def _gram():
    X, y = dense(4000, 20)
    squares = (X * X).sum(axis=1)
    return np.exp(-0.02 * (squares[:, None] + squares - 2.0 * X @ X.T)), y


@functools.lru_cache(1)
def _mapped():
    X, y = dense()
    file = tempfile.NamedTemporaryFile(prefix="interrupts-", suffix=".npy", delete=False)
    with file:
        np.save(file, X)
    mapped = np.load(file.name, mmap_mode="r")
    os.unlink(file.name)
    return mapped, y


def _texts():
    X, y = dense()
    return X, np.array(["minus", "plus"], dtype=object)[y]


def _frame():
    import pandas as pd

    X, y = dense()
    return pd.DataFrame(X.astype(np.float32), columns=[f"c{j}" for j in range(X.shape[1])]), y


@functools.lru_cache(1)
def _columns():
    X, y = sparse()
    return X.tocsc(), y


def _plain(objective="svm", **given):
    X, y = dense()
    return mdlearn.fit(objective, X, y, tol=1e-3, **given)


def _predict():
    model, (X, _) = _plain(), dense()
    return lambda: model.predict(X)


def _predict_kernel():
    X, y = dense()
    model = mdlearn.fit("svm", X[:3000], y[:3000], kernel="rbf")
    return lambda: model.predict(X[:200_000])


def _margins():
    model, (X, y) = _plain(), dense()
    return lambda: model.margins(X, y, normalized=True)


def _bounds():
    model, (X, y) = _plain(), dense()
    z = model.margins(X, y)
    return lambda: (mdlearn.margins.top_p(z, 1000), mdlearn.margins.cumulative_curve(z))


@functools.lru_cache(1)
def _saved():
    folder = tempfile.mkdtemp(prefix="interrupts-")
    path = os.path.join(folder, "model.npz")
    X, y = dense(k=4)
    model = mdlearn.fit("svm", X, y, tol=1e-3)
    model.save(path)
    return model, path


def _save():
    model, path = _saved()
    return lambda: model.save(path)


def _load():
    path = _saved()[1]
    return lambda: mdlearn.load(path)


class Patient(mdlearn.Solver):
    """A plugin's engine: gradient steps on a squared hinge, one pass over the rows each."""

    name = "patient"
    purpose = "gradient steps"
    kinds = frozenset({"squared"})

    def iterate(self, form, column, shared, options, rng):
        """Steps of fixed length."""
        from mdlearn.forms.margin import Point
        from mdlearn.solvers.base import Report

        w, rows = np.zeros(form.features.width), form.features.rows
        for _ in range(40):
            slopes = column.slopes(column.y * rows.dot(w))
            yield None
            w = w + 1e-7 * (rows.adjoint(column.y * slopes.sum(axis=0)) - w)
            yield Report(np.inf, -np.inf, Point(slopes, np.zeros_like(column.y), w, 0.0))


LOCAL = {"n_clusters": 50, "n_landmarks": 20, "loss": "squared_hinge"}
FEW = functools.partial(dense, 300_000, WIDTH)
CASES = (
    Fit("dense svm (interior)", "svm", dense, {}, _svm),
    Fit("dense ldm (interior)", "ldm", dense, {}, _ldm),
    Fit("dense ldm, tol=1e-12", "ldm", dense, {"tol": 1e-12}, _ldm),
    Fit("dense ldm, free bias", "ldm", dense, {"bias": "free"}, _ldm),
    Fit("dense lsvm (newton)", "lsvm", dense, {}, _lsvm),
    Fit("dense lsvm (smw)", "lsvm", dense, {"solver": "smw", "max_iter": 60}, _lsvm),
    Fit("dense lssvm (direct)", "lssvm", dense, {}, _lssvm),
    Fit("dense uldm (direct)", "uldm", dense),
    Fit("dense l2lr (newton)", "l2lr", dense, {}, _l2lr),
    Fit("dense mdlm (apg)", "mdlm", dense, {"ridge": 1e-3, "beta": 0.01}),
    Fit("dense svm (asgd)", "svm", dense, {"solver": "asgd", "bias": "none"}, _svm),
    Fit("dense svm (cd)", "svm", dense, {"solver": "cd", "max_iter": 5}, _svm),
    Fit("dense rlp (linprog)", "rlp", functools.partial(dense, 100_000, 20)),
    Fit("sparse svm (cd)", "svm", sparse, {"max_iter": 4}, _svm),
    Fit("sparse ldm (cd)", "ldm", sparse, {"max_iter": 4}, _ldm),
    Fit("sparse svm (asgd)", "svm", sparse, {"solver": "asgd", "bias": "none", "max_iter": 6}, _svm),
    Fit("sparse l2lr (apg)", "l2lr", sparse, {"solver": "apg", "max_iter": 10}, _l2lr),
    Fit("float32 ldm", "ldm", functools.partial(dense, dtype="float32"), {}, _ldm),
    Fit("Fortran order ldm", "ldm", functools.partial(dense, order="F"), {}, _ldm),
    Fit("memory map ldm", "ldm", _mapped, {}, _ldm),
    Fit("labels of text svm", "svm", _texts),
    Fit("weights svm", "svm", dense, {"sample_weight": np.arange(MILLION) % 3, "class_weight": "balanced"}),
    Fit("data frame svm", "svm", _frame),
    Fit("integers svm", "svm", functools.partial(dense, dtype="int64")),
    Fit("CSC svm (cd)", "svm", _columns, {"max_iter": 2}, _svm),
    Fit("ten classes svm, 2 threads", "svm", functools.partial(dense, k=10), {"n_threads": 2}),
    Fit("ovo svm, 2 threads", "svm", functools.partial(dense, k=4), {"n_threads": 2, "multiclass": "ovo"}),
    Fit("joint mdlm (apg)", "mdlm", functools.partial(dense, k=4), {"ridge": 1e-3}),
    Fit("l3svm, k-means", "l3svm", dense, LOCAL),
    Fit("l3svm, soft", "l3svm", FEW, {**LOCAL, "membership": "soft", "landmark_selection": "kmeans"}),
    Fit("l3svm, pca, rbf", "l3svm", dense, {**LOCAL, "landmark_selection": "pca", "projection": "rbf"}),
    Fit("kernel 6000 svm (cd)", "svm", _kernel(6000), {"kernel": "rbf", **HARD, "solver": "cd"}),
    Fit("kernel 6000 ldm (cd)", "ldm", _kernel(6000), {"kernel": "rbf", "solver": "cd"}),
    Fit("kernel 4000 ldm (interior)", "ldm", _kernel(4000), {"kernel": "rbf", "solver": "interior"}),
    Fit("kernel 8000 lssvm (direct)", "lssvm", _kernel(8000), {"kernel": "rbf"}),
    Fit("kernel 4000 lsvm (newton)", "lsvm", _kernel(4000), {"kernel": "rbf"}),
    Fit("kernel 4000 uldm (direct)", "uldm", _kernel(4000), {"kernel": "rbf"}),
    Fit("precomputed 4000 ldm", "ldm", _gram, {"kernel": "precomputed"}),
    Fit("kernel 4 classes, 2 threads", "ldm", functools.partial(dense, 4000, 20, 4), {"kernel": "rbf", "n_threads": 2}),
    Fit("engine of a plugin", "lsvm", dense, {"solver": Patient}),
    After("predict", _predict),
    After("predict, kernel", _predict_kernel),
    After("margins", _margins),
    After("statistics of margins", _bounds),
    After("save", _save),
    After("load", _load),
)
