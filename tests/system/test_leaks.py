"""What a fit leaves behind: nothing that grows, and nothing that only the garbage collector would find."""

from __future__ import annotations

import contextlib
import gc
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest
import scipy.sparse
from threading_cases import data

import mdlearn

X, Y = data(40, 3, 3)
SPARSE = scipy.sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
FITS = {
    "interior": ("ldm", X, {"solver": "interior"}),
    "interior, Gram": ("ldm", X, {"solver": "interior", "kernel": "rbf", "bias": "free"}),
    "cd, working sets": ("ldm", X, {"solver": "cd", "kernel": "rbf"}),
    "cd, rows": ("ldm", X, {"solver": "cd", "multiclass": "ovo"}),
    "cd, CSR": ("svm", SPARSE, {"solver": "cd"}),
    "direct": ("lsldm", X, {}),
    "newton": ("mlr", X, {}),
    "newton, Gram": ("lsvm", X, {"kernel": "rbf"}),
    "apg": ("mdlm", X, {"beta": 0.01}),
    "apg, scores": ("mmlr", X, {}),
    "asgd": ("ldm", X, {"solver": "asgd"}),
    "sgd": ("svm", SPARSE, {"solver": "sgd"}),
    "smw": ("lsvm", X, {"solver": "smw", "max_iter": 20}),
    "linprog": ("rlp", X, {}),
    "landmarks": ("l3svm", X, {"n_clusters": 2}),
    "basis": ("uldm", X, {"kernel": "rbf", "basis": "cholesky"}),
    "threads": ("ldm", X, {"kernel": "rbf", "n_threads": 2}),
    "refused": ("svm", np.zeros((40, 3)), {"C": np.inf}),
    "a wrong argument": ("svm", X, {"C": -1.0}),
}


def fitted(case):
    name, rows, given = FITS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit(name, rows, Y, **given)


def held(case, times):
    """(objects that the collector knows, bytes of arrays) after so many fits."""
    for _ in range(times):
        with contextlib.suppress(ValueError):
            fitted(case).predict(FITS[case][1])
    gc.collect()
    arrays = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)])
    return len(gc.get_objects()), sum(trace.size for trace in arrays.traces)


@pytest.mark.slow
@pytest.mark.parametrize("case", FITS)
def test_nothing_grows(case):
    """Ten fits leave no more objects and arrays than three."""
    tracemalloc.start()
    try:
        held(case, 2)
        objects, size = held(case, 1)
        more_objects, more_size = held(case, 7)
    finally:
        tracemalloc.stop()
    assert more_objects - objects < 7 and more_size <= size


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in FITS if case not in ("refused", "a wrong argument")])
def test_models_and_rows_go_without_the_collector(case):
    """Nothing of a fit refers to itself: rows, Gram matrices and models go with the last reference to them."""
    name, rows, given = FITS[case]
    gc.collect()
    gc.disable()
    try:
        rows = rows.copy()
        parts = [rows.data] if scipy.sparse.issparse(rows) else [rows]
        seen = []

        def callback(state):
            seen.append(weakref.ref(state))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
            model = mdlearn.fit(name, rows, Y, callback=callback, **given)
        watched = [weakref.ref(one) for one in (model, *parts)]
        del rows, parts, model
        assert [ref() is None for ref in watched] == [True] * len(watched)
    finally:
        gc.enable()


@pytest.mark.parametrize("n_threads", [None, 2])
@pytest.mark.parametrize("case", ["interior, Gram", "cd, working sets", "newton", "apg"])
def test_nothing_is_left_after_an_error(case, n_threads):
    """An error of the callback's holds the fit's frames; with the error they go."""
    name, rows, given = FITS[case]
    rows = rows.copy()
    watched = weakref.ref(rows)

    def fail(state):
        raise LookupError("enough")

    gc.collect()
    gc.disable()
    try:
        with pytest.raises(LookupError) as caught:
            mdlearn.fit(name, rows, Y, callback=fail, **{**given, "n_threads": n_threads})
        del rows, caught
        assert watched() is None
    finally:
        gc.enable()
