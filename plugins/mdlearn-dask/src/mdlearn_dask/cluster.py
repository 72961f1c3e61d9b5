"""The cluster that a fit runs on: one that is there, one at an address, or one of its own."""

import contextlib
import logging

import distributed
from distributed import Client, LocalCluster

WAIT = 10.0
"""Seconds after which a scheduler that does not answer is taken to be out of reach."""


class Connection:
    """A client, and what has to be closed with it.

    Parameters
    ----------
    cluster : distributed.Client, str, cluster or None
        A client; the address of a scheduler ("tcp://host:8786"); a cluster of Dask (`LocalCluster`, ...); None: the
        client of this process, and where there is none a `LocalCluster` with one process per processor.
    wait : float
        Seconds to wait for a scheduler.

    Raises
    ------
    ConnectionError
        When the scheduler does not answer, or has no workers in that time.
    """

    def __init__(self, cluster, wait=WAIT):
        self.own = []
        if isinstance(cluster, Client):
            self.client = cluster
        elif cluster is None:
            self.client = _present() or self._started()
        else:
            self.client = self._reached(cluster, wait)
        if self.client.asynchronous:
            raise TypeError("the client is asynchronous; give one that is not, or the address of its scheduler")
        with self._closed_on_failure():
            self._check_workers(wait)

    def close(self):
        """Close what was opened here, the last one first."""
        while self.own:
            with contextlib.suppress(Exception):  # a cluster that is gone already
                self.own.pop().close()

    def _started(self):
        cluster = LocalCluster(threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR)
        self.own.append(cluster)
        self.own.append(Client(cluster, set_as_default=False))
        return self.own[-1]

    def _reached(self, cluster, wait):
        try:
            client = Client(cluster, timeout=wait, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ConnectionError(
                f"no Dask scheduler answers at {cluster!r} within {wait:g} s ({_short(error)}); start one there, or "
                "give the address of another"
            ) from None
        self.own.append(client)
        return client

    @contextlib.contextmanager
    def _closed_on_failure(self):
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _check_workers(self, wait):
        """Every worker needs the same mdlearn: it does the work."""
        import mdlearn

        try:
            self.client.wait_for_workers(1, timeout=wait)
        except TimeoutError:
            raise ConnectionError(
                f"the Dask scheduler at {self.client.scheduler.address} has no workers; start some"
            ) from None
        found = self.client.run(_version)
        other = {where: version for where, version in found.items() if version != mdlearn.__version__}
        if other:
            where, version = next(iter(other.items()))
            has = f"mdlearn {version}" if version else "no mdlearn"
            raise ImportError(f"the worker {where} has {has}, this process {mdlearn.__version__}; install the same")


def _present():
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _version():
    """Version of a worker's mdlearn; empty where it has none."""
    try:
        import mdlearn
    except ImportError:
        return ""
    return mdlearn.__version__


def _short(error):
    return str(error).splitlines()[0] if str(error) else type(error).__name__
