"""Pieces of work in threads: each is done once, whatever ends it, and nothing is left behind."""

import threading

import numpy as np
import pytest
import scipy.sparse
from threading_cases import FOUND, blas, left_as_found, many_cores

import mdlearn
from mdlearn.data.features import kernel_tiles, kernels
from mdlearn.data.rows.rows import DenseRows
from mdlearn.numerics import memory, pieces_in_threads
from mdlearn.numerics.blas_threads import blas_threads
from mdlearn.numerics.cholesky import cholesky, cholesky_lower_solve
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.pieces_in_threads import over_pieces, work_in_threads
from mdlearn.solvers.newton_cg.stored_tiles import StoredTiles
from mdlearn.solvers.systems.weighted_gram import add_weighted_gram

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures(left_as_found.__name__, many_cores.__name__)]


def meeting(parties):
    """Work that waits until so many threads are at it; what each saw."""
    together, seen = threading.Barrier(parties), []

    def work(piece):
        if piece < parties:
            together.wait(20)
        seen.append((piece, threading.get_ident(), *set(blas())))

    return work, seen


@pytest.mark.parametrize("allowed", [1, 2, None])
def test_every_piece_is_done_once_by_as_many_threads_as_blas_may_have(allowed):
    parties = allowed or FOUND
    work, seen = meeting(parties)
    with blas_threads(allowed):
        work_in_threads(range(20), work)
    assert sorted(piece for piece, *_ in seen) == list(range(20))
    assert len({thread for _, thread, _ in seen}) == parties and {n for *_, n in seen} == {1}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("in_caller", [False, True])
def test_an_error_of_any_thread_ends_all(error, in_caller):
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


def test_errors_of_numpy_are_the_callers_in_every_thread():
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
def test_predictions_have_the_same_bits_in_any_number_of_threads(kernel, form, monkeypatch):
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


@pytest.mark.parametrize("allowed", [1, 2, None])
@pytest.mark.parametrize("in_threads", [False, True])
def test_results_are_used_in_the_order_of_pieces(allowed, in_threads, monkeypatch):
    monkeypatch.setattr(pieces_in_threads, "SINGLE_THREAD_PIECES", 0.0)
    monkeypatch.setattr(pieces_in_threads, "OPERATIONS_PER_BEAT", 4.0)
    threads, used, beats = set(), [], 0
    together = threading.Barrier((allowed or FOUND) if in_threads else 1)

    def work(piece):
        threads.add(threading.get_ident())
        if piece < together.parties:
            together.wait(20)
        return -piece

    with blas_threads(1, allowed or FOUND):
        for _ in over_pieces(iter(range(21)), work, lambda piece: 1.0, lambda *one: used.append(one), in_threads):
            beats += 1
    assert used == [(piece, -piece) for piece in range(21)]
    assert beats == 21 // (4 * together.parties)
    assert len(threads) >= together.parties and (together.parties > 1 or threads == {threading.get_ident()})


@pytest.mark.parametrize(("room", "parties"), [(float("inf"), FOUND), (2.5 * 2**28, 3), (2.0**28, 2), (2.0**27, 1)])
def test_threads_need_room_in_the_address_space(room, parties, monkeypatch):
    """BLAS ends the process where it gets no buffer."""
    monkeypatch.setattr(memory, "bytes_of_address_space", lambda: room)
    parties = min(parties, FOUND)
    work, seen = meeting(parties)
    work_in_threads(range(20), work)
    assert len({thread for _, thread, _ in seen}) == parties


def test_threads_that_cannot_begin_are_done_without(monkeypatch):
    start, begun = threading.Thread.start, []

    def refused(self):
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refused)
    work, seen = meeting(2)
    work_in_threads(range(20), work)
    assert sorted(piece for piece, *_ in seen) == list(range(20))


def made(tiles, index, others, coef):
    n = index.shape[0]
    all_rows, some = np.zeros(tiles.n_rows), np.zeros(tiles.n_rows)
    finished(tiles.add(all_rows, np.arange(tiles.n_rows), coef))
    finished(tiles.add(some, index, coef[index]))
    H = finished(tiles.block(index, np.empty(n * n, dtype=tiles.dtype))).copy()
    return all_rows, some, H, finished(tiles.between(index, others)), finished(tiles.across(others))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "few columns", "stored"])
def test_tiles_have_the_same_bits_in_any_number_of_threads(kernel, monkeypatch):
    monkeypatch.setattr(pieces_in_threads, "SINGLE_THREAD_PIECES", 0.0)
    monkeypatch.setattr(kernel_tiles, "TILE_LENGTH", 64)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 3 if kernel == "few columns" else 12))
    params = {"gamma": 0.1, **({"degree": 2, "coef0": 1.0} if kernel == "poly" else {})}
    plain = kernels.Kernel("poly" if kernel == "poly" else "rbf", params)
    tiles = kernel_tiles.make_kernel_tiles(plain, DenseRows(X), single=True)
    if kernel == "stored":
        tiles = StoredTiles(tiles, 2e5, rounded=True)
        finished(tiles.fill())
    index, others, coef = np.sort(rng.choice(500, 300, replace=False)), np.arange(7, 407, 3), rng.standard_normal(500)
    found = []
    for n in (1, 2, FOUND):
        with blas_threads(1, n):
            found.append(made(tiles, index, others, coef))
    K = np.array(plain.block(DenseRows(X), DenseRows(X)))
    expected = K @ coef, K[:, index] @ coef[index], K[np.ix_(index, index)], K[np.ix_(index, others)], K[:, others]
    for one, *same, right in zip(*found, expected):
        assert all(one.tobytes() == other.tobytes() for other in same)
        np.testing.assert_allclose(one, right, atol=2e-4 * np.abs(right).max())


def test_kernels_of_plugins_are_asked_in_the_calling_thread(monkeypatch):
    monkeypatch.setattr(pieces_in_threads, "SINGLE_THREAD_PIECES", 0.0)
    monkeypatch.setattr("mdlearn.numerics.blas_threads.SINGLE_THREAD_WORK", 1.0)
    threads = set()

    def values(A, B):
        threads.add(threading.get_ident())
        return A @ B.T

    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 3))
    mdlearn.fit("svm", X, X[:, 0] > 0.1, kernel=values, tol=1e-2)
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("n", [800, pytest.param(1500, marks=pytest.mark.slow)])
def test_factors_have_the_same_bits_in_any_number_of_threads(n, monkeypatch):
    monkeypatch.setattr(pieces_in_threads, "SINGLE_THREAD_PIECES", 0.0)
    rng = np.random.default_rng(n)
    B = rng.standard_normal((n + 5, n))
    A, right, found = B.T @ B, rng.standard_normal((n, 40)), []
    for threads in (1, 2, FOUND):
        with blas_threads(1, threads):
            L = np.tril(finished(cholesky(A.copy())))
            M = np.zeros((n, n))
            finished(add_weighted_gram(DenseRows(B), False, np.ones(n + 5), M))
            found.append((L, finished(cholesky_lower_solve(L, right.copy())), np.tril(M)))
    for one, *same in zip(*(numbers[:2] for numbers in found)):
        assert all(one.tobytes() == other.tobytes() for other in same)
    assert found[1][2].tobytes() == found[2][2].tobytes(), "one thread makes X'DX in larger products"
    L, solved, M = found[0]
    np.testing.assert_allclose(L @ L.T, A, atol=1e-11 * np.abs(A).max())
    np.testing.assert_allclose(L @ solved, right, atol=1e-10)
    np.testing.assert_allclose(M, np.tril(A), atol=1e-11 * np.abs(A).max())
