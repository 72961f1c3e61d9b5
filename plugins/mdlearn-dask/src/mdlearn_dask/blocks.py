"""Row blocks on the workers of a Dask cluster."""

import pickle
import threading
import time
import weakref
from concurrent.futures import CancelledError

import cloudpickle
import numpy as np
from dask.sizeof import sizeof
from distributed import KilledWorker
from distributed.comm import CommClosedError

from mdlearn import RowBlocks
from mdlearn.extend import Census, Portion, Tree, blas_threads, paired, plus

from .cluster import WAIT, Connection
from .inputs import delayed_blocks, known

PAUSE = 0.005
"""Seconds between two looks at whether the workers are done."""
LOST = (KilledWorker, CommClosedError, CancelledError)


class DaskBlocks(RowBlocks):
    """Row blocks on the workers of a Dask cluster, for `mdlearn.fit` with y None.

    The blocks are computed once and stay on the workers. A pass sends its work to them (a few vectors of d numbers),
    and their sums are added in pairs, on the workers: in the order in which one process adds them, so that the model
    has the same bits. Blocks of a worker that dies are computed again from their recipe.

    ``mdlearn.fit(name, X, y)`` with a Dask collection makes one of these by itself, on the client of this process.

    Parameters
    ----------
    X : dask array of shape (m, d), dask data frame, or list of Delayed
        Rows, cut into blocks by Dask; or delayed blocks (X, y) or (X, y, weight) of any kind that `mdlearn.RowBlocks`
        takes.
    y : dask array or series of shape (m,), array-like or str, optional
        Labels; a text names a column of the data frame X. None: blocks have their own.
    weight : dask array or series of shape (m,) or array-like, optional
        Repetition counts.
    cluster : distributed.Client, str or cluster, optional
        A client, the address of a scheduler, or a cluster. Default: the client of this process, and where there is
        none a `LocalCluster` with one process per processor, which is closed with this object.
    wait : float, default 10
        Seconds after which a scheduler that does not answer is taken to be out of reach.
    checkpoint, held
        As for `mdlearn.RowBlocks`.

    Raises
    ------
    ConnectionError
        When no scheduler answers or no worker is there; later, when the cluster is lost in the middle of a fit.
    ImportError
        When a worker has another mdlearn, or none.
    TypeError, ValueError
        For X, y and weights that do not go together.
    """

    name = "dask"

    def __init__(self, X, y=None, weight=None, *, cluster=None, wait=WAIT, checkpoint=None, held=None):
        recipes = delayed_blocks(X, y, weight)
        super().__init__((), checkpoint=checkpoint, held=held)
        self.connection = Connection(cluster, wait)
        self._closing = weakref.finalize(self, self.connection.close)
        self.futures = self.connection.client.compute(recipes)

    @classmethod
    def given(cls, X, y, weight):
        """Blocks of Dask's collections."""
        return cls(X, y, weight) if known(X) else None

    def close(self):
        """Let go of the blocks, and close what this object opened."""
        self.futures = []
        self._closing()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def reduced(self, make):
        """Add up what a callable makes of every block, on the workers; see `mdlearn.RowBlocks`."""
        address = self.connection.client.scheduler.address
        work = _Pass(self, make)
        try:
            while work.thread.is_alive():
                time.sleep(PAUSE)
                yield
        finally:
            work.over = True
        if isinstance(work.error, LOST):
            raise ConnectionError(
                f"the Dask cluster at {address} was lost in the middle of a pass "
                f"({type(work.error).__name__}: {work.error}); "
                "start it again and fit anew: a checkpoint goes on from the last pass"
            ) from work.error
        if work.error is not None:
            raise work.error
        return work.found

    def _submitted(self, make):
        """A future of the sum; None where there are no blocks."""
        client = self.connection.client
        # A task and no scattered data: what died with a worker is sent anew.
        sent = client.submit(pickle.loads, cloudpickle.dumps(make), pure=False)
        tree = Tree(lambda one, other: client.submit(plus, one, other, pure=False))
        where = client.who_has(self.futures)
        for number, block in enumerate(self.futures):
            # Where the block is, as long as that worker lives: blocks are large, and Dask moves them to idle workers.
            near = list(where.get(block.key) or ())
            place = {"workers": near, "allow_other_workers": True} if near else {}
            tree.push(client.submit(_made, sent, number, block, pure=False, **place))
        return tree.total()

    def __iter__(self):
        """Blocks in this process, one after the other."""
        return (paired(future.result()) for future in self.futures)


class _Pass:
    """A pass in a thread of its own: futures come and go there.

    Ctrl-C comes to the main thread, wherever that is. In the finalizer of a future, or in the callback by which Dask
    watches Python's garbage collector, it would be told as an error that is ignored, and the fit would go on.
    """

    def __init__(self, blocks, make):
        self.blocks, self.make = blocks, make
        self.found, self.error, self.over = None, None, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        """Submit the work and wait for its sum, unless nobody does any more."""
        try:
            total = self.blocks._submitted(self.make)
            while total is not None and not total.done():
                if self.over:
                    return
                time.sleep(PAUSE)
            self.found = None if total is None else total.result()
        except BaseException as error:
            self.error = error


@sizeof.register(Census)
@sizeof.register(Portion)
def _size(thing):
    """Bytes of the arrays in what is added up: Dask would take it for a few bytes, and send it about."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    parts = thing if isinstance(thing, dict) else getattr(thing, "__dict__", {})
    return 64 + sum(map(_size, parts.values()))


def _made(make, number, block):
    """On a worker. One BLAS thread: blocks are what is done at the same time, and sums do not depend on the worker."""
    with blas_threads(1):
        return make(number, block)
