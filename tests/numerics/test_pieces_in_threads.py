"""Pieces of work in threads: each is done once, whatever ends it, and nothing is left behind."""

import threading

import numpy as np
import pytest
import scipy.sparse
from threading_cases import FOUND, blas, left_as_found

import mdlearn
from mdlearn.data.features import kernel_tiles, kernels
from mdlearn.numerics import pieces_in_threads
from mdlearn.numerics.blas_threads import GUARD, blas_threads
from mdlearn.numerics.pieces_in_threads import work_in_threads

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures(left_as_found.__name__)]


@pytest.fixture
def many_cores(monkeypatch):
    monkeypatch.setattr(GUARD, "found", lambda: FOUND)


def meeting(parties):
    """Work that waits until so many threads are at it; what each saw."""
    together, seen = threading.Barrier(parties), []

    def work(piece):
        if piece < parties:
            together.wait(20)
        seen.append((piece, threading.get_ident(), *set(blas())))

    return work, seen


@pytest.mark.parametrize("allowed", [1, 2, None])
def test_every_piece_is_done_once_by_as_many_threads_as_blas_may_have(allowed, many_cores):
    parties = allowed or FOUND
    work, seen = meeting(parties)
    with blas_threads(allowed):
        work_in_threads(range(20), work)
    assert sorted(piece for piece, *_ in seen) == list(range(20))
    assert len({thread for _, thread, _ in seen}) == parties and {n for *_, n in seen} == {1}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("in_caller", [False, True])
def test_an_error_of_any_thread_ends_all(error, in_caller, many_cores):
    caller, together, done = threading.get_ident(), threading.Barrier(FOUND), []

    def work(piece):
        if piece < FOUND:
            together.wait(20)
            if (threading.get_ident() == caller) is in_caller:
                raise error("no more")
        done.append(piece)

    with pytest.raises(error, match="no more"):
        work_in_threads(iter(range(10**6)), work)
    assert len(done) < 10**6 // 2


def test_errors_of_numpy_are_the_callers_in_every_thread(many_cores):
    def work(piece):
        together.wait(20)
        np.float64(1e308) * np.float64(10.0)

    together = threading.Barrier(FOUND)
    with np.errstate(over="ignore"):
        work_in_threads(range(FOUND), work)
    together = threading.Barrier(FOUND)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        work_in_threads(range(FOUND), work)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_predictions_have_the_same_bits_in_any_number_of_threads(kernel, form, many_cores, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 5)), rng.integers(0, 3, 400)
    model = mdlearn.fit("lssvm", form(X), y, kernel=kernel)
    monkeypatch.setattr(kernel_tiles, "SUMS_TILE", (64, 96))
    one = model.decision_function(form(X))
    threads, make = set(), kernels.Kernel.tile

    def tile(self, *given):
        threads.add(threading.get_ident())
        return make(self, *given)

    monkeypatch.setattr(kernels.Kernel, "tile", tile)
    model.decision_function(form(X))
    assert len(threads) == 1, "a small prediction"
    monkeypatch.setattr(pieces_in_threads, "SINGLE_THREAD_PIECES", 1.0)
    together = threading.Barrier(FOUND)  # first tiles wait for each other: no thread comes too late
    first = threading.local()

    def meet(self, *given):
        if not hasattr(first, "met"):
            first.met = together.wait(20)
        return tile(self, *given)

    monkeypatch.setattr(kernels.Kernel, "tile", meet)
    several = model.decision_function(form(X))
    assert len(threads) == FOUND and several.tobytes() == one.tobytes()
