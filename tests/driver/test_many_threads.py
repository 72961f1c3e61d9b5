"""Many fits in many threads at once, of every objective and engine, some of which fail: each as if it were alone."""

from __future__ import annotations

import itertools
import random
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse
from threading_cases import at_work, data

import mdlearn
from mdlearn.numerics.blas_threads import GUARD

pytestmark = pytest.mark.threads

X, Y = data(70, 4, 3)
SPARSE = scipy.sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
FITS = [
    ("ldm", X, {}),
    ("ldm", X, {"kernel": "rbf"}),
    ("ldm", X.astype(np.float32), {"kernel": "rbf", "bias": "free", "multiclass": "ovo"}),
    ("ldm", SPARSE, {"solver": "cd"}),
    ("ldm", X, {"solver": "asgd"}),
    ("svm", SPARSE, {"solver": "sgd"}),
    ("svm", X, {"kernel": "poly", "degree": 2, "C": 10.0}),
    ("lssvm", X, {"kernel": "rbf"}),
    ("lsldm", X, {}),
    ("lsvm", X, {"solver": "smw", "max_iter": 30}),
    ("lsvm", X, {"reduced": 9, "kernel": "rbf"}),
    ("uldm", X, {"kernel": "rbf", "basis": "cholesky"}),
    ("mdlm", X, {"beta": 0.01}),
    ("mmlr", X, {}),
    ("l2lr", X, {}),
    ("ww", X, {}),
    ("rlp", X, {}),
    ("l3svm", X, {"n_clusters": 3, "n_landmarks": 3}),
    ("l3svm", X, {"n_clusters": 3, "projection": "rbf", "smoothness": 0.5, "membership": "soft"}),
]


def bits(model):
    """Everything numerical that a model holds, and the course of the fit."""
    arrays = [model.intercept_, model.duals, *(a for a in (model._coef, model._alpha) if a is not None)]
    course = [(s.problem, s.iteration, s.objective, s.lower_bound) for s in model.history]
    return b"".join(np.ascontiguousarray(a).tobytes() for a in arrays), repr(model.certificate.parts), course


class Enough(Exception):
    """What a callback raises."""


def enough(state):
    raise Enough


FAILURES = [
    ("ldm", X, {"C": -1.0}),
    ("svm", np.full((70, 4), np.nan), {}),
    ("svm", np.zeros((70, 4)), {"C": np.inf, "kernel": "rbf", "gamma": 1.0}),
    ("ldm", X, {"kernel": "rbf", "callback": enough}),
    ("mdlm", X, {"callback": enough, "beta": 0.1}),
    ("ldm", X, {"kernel": lambda A, B: np.zeros((1, 1))}),
]


def outcome(fit, n_threads):
    """Bits and objective of a fit, or the kind and text of its error."""
    name, rows, given = fit
    try:
        model = mdlearn.fit(name, rows, Y, n_threads=n_threads, **given)
    except (ValueError, TypeError, Enough) as error:
        return (type(error), str(error)), None
    return bits(model), model.certificate.objective


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [(1,), (None, 1, 2)], ids=["one thread each", "several numbers"])
def test_as_if_alone(numbers):
    """With one thread each to the last bit; else BLAS goes by the smallest number, whose last digits are its own."""
    work = [(fit, n) for fit, n in itertools.product([*FITS, *FAILURES], numbers)]
    random.Random(0).shuffle(work)
    with warnings.catch_warnings():  # the list of filters is one per process: set here, not in the threads
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        alone = [outcome(*one) for one in work]
        assert sum(value is None for _, value in alone) == len(numbers) * len(FAILURES)
        together, errors, ways = [[None] * len(work) for _ in range(8)], [], list(range(len(work)))
        gate = threading.Barrier(8)

        def crowd(k):
            try:
                order = random.Random(k).sample(ways, len(ways) // 2)
                gate.wait(60)
                for j in order:
                    together[k][j] = outcome(*work[j])
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=crowd, args=(k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive(), "a deadlock"
    assert not errors, errors
    for mine in together:
        for j, found in enumerate(mine):
            if found is None:
                continue
            if numbers == (1,) or found[1] is None:
                assert found == alone[j], work[j]
            else:
                assert found[1] == pytest.approx(alone[j][1], rel=3e-6), work[j]
    assert not GUARD.scopes and not at_work()


@pytest.mark.parametrize("rounds", [40])
def test_one_model_in_many_threads(rounds):
    """A model is only read: predictions of eight threads at once, and fits that begin at it."""
    models = [
        mdlearn.fit("ldm", X, Y, kernel="rbf"),
        mdlearn.fit("l3svm", X, Y, n_clusters=3),
        mdlearn.fit("uldm", X, Y),
    ]
    alone = [[model.decision_function(X).tobytes(), model.margins(X, Y).tobytes()] for model in models]
    warm = bits(mdlearn.fit("ldm", X, Y, kernel="rbf", C=2.0, warm_start=models[0]))
    wrong = []

    def read(k):
        for j in range(rounds):
            i = (j + k) % len(models)
            if [models[i].decision_function(X).tobytes(), models[i].margins(X, Y).tobytes()] != alone[i]:
                wrong.append((k, j))
        if bits(mdlearn.fit("ldm", X, Y, kernel="rbf", C=2.0, warm_start=models[0])) != warm:
            wrong.append((k, "warm"))

    threads = [threading.Thread(target=read, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a deadlock"
    assert not wrong
