"""Values computed once: kept in the object, without a lock that forked processes or other threads would wait for."""

import os
import threading

import pytest

from mdlearn.numerics.lazy_property import kept


class Slow:
    """Its first value is ready when it is told so."""

    def __init__(self):
        self.began, self.go, self.times = threading.Event(), threading.Event(), 0

    @kept
    def value(self):
        """A value."""
        self.times += 1
        self.began.set()
        assert self.go.wait(60)
        return self.times


@pytest.fixture
def at_work():
    """An object whose value a thread is computing."""
    slow = Slow()
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert slow.began.wait(60)
    yield slow
    slow.go.set()
    thread.join()


def test_a_value_is_computed_once():
    one = Slow()
    one.go.set()
    assert (one.value, one.value, one.times) == (1, 1, 1)
    assert Slow.value.__doc__ == "A value." and isinstance(Slow.value, kept)


def test_threads_do_not_wait_for_each_other(at_work):
    other = Slow()
    other.go.set()
    done = threading.Event()
    thread = threading.Thread(target=lambda: done.set() if other.value else None, daemon=True)
    thread.start()
    assert done.wait(60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_does_not_wait(at_work):
    child = os.fork()
    if not child:
        import signal

        signal.alarm(60)
        other = Slow()
        other.go.set()
        os._exit(0 if other.value == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
