"""Fitted models of many kinds, and the parts of their files, for the tests of saving and loading."""

import io
import json

import numpy as np
import scipy.sparse as sp

import mdlearn
from mdlearn.model.file import persistence


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


def members(content):
    with np.load(io.BytesIO(content)) as file:
        return {name: file[name] for name in file.files}


def sealed(header, arrays):
    """A file whose digest is right, as someone would make it on purpose."""
    header = {**header, "arrays": {name: [a.dtype.str, list(a.shape)] for name, a in arrays.items()}}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    out = io.BytesIO()
    np.savez(out, header=text, digest=persistence._model_file_digest(text, arrays), **arrays)
    return out.getvalue()


def opened(content):
    arrays = members(content)
    header = json.loads(arrays.pop("header").tobytes())
    del arrays["digest"]
    return header, {name: arrays[name] for name in header["arrays"]}
