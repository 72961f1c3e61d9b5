"""What happens to clusters: workers that die or are slow, schedulers that do not answer, limits, interruption."""

import os
import signal
import threading
import time
import weakref

import dask
import distributed
import numpy as np
import pytest
from distributed import Client, LocalCluster
from mdlearn_dask import DaskBlocks

import mdlearn


@pytest.fixture
def listening():
    """Ctrl-C as at a terminal: a process that a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def client():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as found:
        yield found


def made(seed, m):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4))
    return X, X @ np.arange(1.0, 5.0) + 3.0 * rng.standard_normal(m) > 0


SIZES = (500, 20, 700, 0, 300, 1, 900, 400)


def recipes(sizes=SIZES):
    return [dask.delayed(made, pure=True)(seed, m) for seed, m in enumerate(sizes)]


def local(name, **given):
    return mdlearn.fit(name, [made(seed, m) for seed, m in enumerate(SIZES)], None, n_threads=1, **given)


def same(one, other):
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)
    assert one.certificate == other.certificate


def slowed(seconds, spared=0):
    """On a worker: everything that is made of a block takes longer, but for the first `spared` times."""
    from itertools import count

    from mdlearn_dask import blocks

    plain = blocks.blas_threads
    times = count()

    def slow(n):
        if next(times) >= spared:
            time.sleep(seconds)
        return plain(n)

    blocks.blas_threads = slow


def pids(client):
    return list(client.run(os.getpid).values())


@pytest.mark.parametrize("name", ["svm", "lsvm"])
def test_a_worker_killed_between_two_passes(client, name):
    """Its blocks are gone with it, and are computed again."""
    before = pids(client)

    def callback(state):
        if state.iteration == 1:
            os.kill(before[0], signal.SIGKILL)

    blocks = DaskBlocks(recipes(), cluster=client, held=50)
    model = mdlearn.fit(name, blocks, None, n_threads=1, tol=1e-9, callback=callback)
    blocks = mdlearn.RowBlocks([made(seed, m) for seed, m in enumerate(SIZES)], held=50)
    same(model, mdlearn.fit(name, blocks, None, n_threads=1, tol=1e-9))
    assert before[0] not in pids(client)


def test_a_worker_killed_in_the_middle_of_a_pass(client):
    before = pids(client)
    client.run(slowed, 0.1)
    killed = threading.Timer(1.0, os.kill, (before[1], signal.SIGKILL))
    blocks = DaskBlocks(recipes(), cluster=client)
    killed.start()
    model = mdlearn.fit("ldm", blocks, None, n_threads=1, tol=1e-9)
    killed.join()
    same(model, local("ldm", tol=1e-9))


def test_a_slow_worker(client):
    slow = next(iter(client.scheduler_info()["workers"]))
    client.run(slowed, 0.05, workers=[slow])
    same(mdlearn.fit("ldm", DaskBlocks(recipes(), cluster=client), None, n_threads=1), local("ldm"))


def test_one_worker_has_nearly_all_rows(client):
    workers = list(client.scheduler_info()["workers"])
    big = client.submit(made, 0, 5000, workers=[workers[0]])
    small = client.submit(made, 1, 7, workers=[workers[1]])
    blocks = DaskBlocks([dask.delayed(big), dask.delayed(small)], cluster=client)
    near = mdlearn.fit("svm", [made(0, 5000), made(1, 7)], None, n_threads=1)
    same(mdlearn.fit("svm", blocks, None, n_threads=1), near)


def test_a_scheduler_out_of_reach():
    started = time.perf_counter()
    with pytest.raises(ConnectionError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:9' within 1 s"):
        DaskBlocks(recipes(), cluster="tcp://127.0.0.1:9", wait=1)
    assert time.perf_counter() - started < 60
    with pytest.raises(ConnectionError, match="no Dask scheduler answers at 'nonsense"):
        DaskBlocks(recipes(), cluster="nonsense://x", wait=1)


def test_a_scheduler_without_workers():
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        with pytest.raises(ConnectionError, match="has no workers; start some"):
            DaskBlocks(recipes(), cluster=cluster, wait=1)


def test_an_address(client):
    with DaskBlocks(recipes(), cluster=client.scheduler.address) as blocks:
        same(mdlearn.fit("ldm", blocks, None, n_threads=1), local("ldm"))
        own = blocks.connection.client
    assert own.status == "closed" and client.status == "running"


def test_a_cluster_of_its_own():
    with DaskBlocks(recipes()) as blocks:
        same(mdlearn.fit("ldm", blocks, None, n_threads=1), local("ldm"))
        own = blocks.connection.client
        assert len(own.scheduler_info()["workers"]) >= 1
    assert own.status == "closed"


def test_a_cluster_of_its_own_goes_with_the_blocks():
    blocks = DaskBlocks(recipes())
    own, gone = blocks.connection.client, weakref.ref(blocks)
    mdlearn.fit("lsvm", blocks, None)
    del blocks
    assert gone() is None and own.status == "closed"  # by the last reference, without the garbage collector


def test_a_cluster_that_is_lost(client):
    client.run(slowed, 0.2)
    blocks = DaskBlocks(recipes(), cluster=client.scheduler.address)
    lost = threading.Timer(1.0, client.cluster.close)
    lost.start()
    with pytest.raises(ConnectionError, match="was lost in the middle of a pass"):
        mdlearn.fit("ldm", blocks, None, n_threads=1, tol=0.0)
    lost.join()


def test_workers_with_another_version(client):
    def pretend():
        import mdlearn

        mdlearn.__version__ = "0.0.1"

    client.run(pretend)
    with pytest.raises(ImportError, match=r"has mdlearn 0\.0\.1, this process"):
        DaskBlocks(recipes(), cluster=client)


def test_a_time_limit_ends_a_pass(client):
    blocks = DaskBlocks(recipes(), cluster=client)
    # The pass that finds classes and features is spared on whichever worker it runs: without it there is no model.
    client.run(slowed, 1.0, spared=len(SIZES))
    started = time.perf_counter()
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        model = mdlearn.fit("lsvm", blocks, None, time_limit=5.0, n_threads=1)
    assert time.perf_counter() - started < 60
    # Where no pass can end in time with the one that certifies, w = 0 is the answer, and its value is known.
    assert np.isfinite(model.certificate.objective) and not model.certificate.converged


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interruption(client, listening):
    """A second Ctrl-C may be needed: where Dask's callback of the garbage collector runs, Python ignores the first."""
    blocks = DaskBlocks(recipes(), cluster=client)
    client.run(slowed, 1.0)
    over = threading.Event()

    def interrupt():
        wait = 0.5
        while not over.wait(wait):
            os.kill(os.getpid(), signal.SIGINT)
            wait = 2.0

    told = threading.Thread(target=interrupt)
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        told.start()
        try:
            mdlearn.fit("lsvm", blocks, None, n_threads=1)
        finally:
            over.set()
    assert time.perf_counter() - started < 60
    told.join()


def test_futures_come_and_go_in_another_thread(client, monkeypatch):
    """Python ignores a KeyboardInterrupt in their finalizers, and signals come to the main thread."""
    threads = []
    release = distributed.Future.release
    monkeypatch.setattr(
        distributed.Future, "release", lambda self: (threads.append(threading.current_thread()), release(self))
    )
    blocks = DaskBlocks(recipes(), cluster=client)
    mdlearn.fit("lsvm", blocks, None, n_threads=1)
    assert threads and threading.main_thread() not in threads


def test_progress(client, capfd):
    mdlearn.fit("lsvm", DaskBlocks(recipes(), cluster=client), None, verbose=2)
    assert capfd.readouterr().err.count("newton: iteration") >= 2


def sent_and_received(client):
    """Bytes that workers have sent to each other so far."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def test_a_pass_sends_little(client):
    """What goes between workers depends on the columns, and not on the rows."""
    sent = []

    def callback(state):
        sent.append(sent_and_received(client))

    for factor in (1, 50):
        sent.clear()
        blocks = DaskBlocks(recipes([factor * m for m in SIZES]), cluster=client)
        mdlearn.fit("lsvm", blocks, None, tol=1e-9, callback=callback)
        assert 200 < np.median(np.diff(sent)) < 10_000  # a block that is moved now and then is no part of a pass
