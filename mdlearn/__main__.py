"""Main module of ``python -m mdlearn``, or ``mdlearn``: the command line as a process, in which Ctrl-C is never lost.

While a module is imported, Python and compiled modules swallow an exception now and then. So KeyboardInterrupt waits
until no import is under way, and is raised again where it got lost in a finalizer or a callback.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from typing import Any

INTERRUPTED = "interrupted"
EXIT_CODE = 128 + signal.SIGINT
POLL_SECONDS = 0.01
IMPORT_PATIENCE_SECONDS = 5.0
"""An import that takes longer, as a plugin's that never ends, is not waited for: the process ends at once."""


def run() -> int:
    """Run ``python -m mdlearn`` as a process of its own (`__main__`); return its exit code."""
    # Where SIGINT is ignored, as in the background of a shell script, it stays ignored.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if interruptible:
            signal.signal(signal.SIGINT, InterruptHandler())
            sys.unraisablehook = _raise_interrupt_again
        from mdlearn.cli import main

        # Run by -m, a package is called by the path of this file; a script by its own name.
        name = os.path.basename(sys.argv[0])
        return main() if name == "__main__.py" else main(program=name.removesuffix(".exe"))
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return EXIT_CODE
    finally:
        if interruptible:  # the work is done, and how Python cleans up is nothing to interrupt
            signal.signal(signal.SIGINT, signal.SIG_IGN)


class InterruptHandler:
    """Handler of SIGINT of ``python -m mdlearn``: raises KeyboardInterrupt, within an import not before it is over."""

    def __init__(self) -> None:
        self._waits_since: float | None = None

    def __call__(self, number: int, frame: Any) -> None:
        """Handle the signal that arrived in a frame."""
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        if not _is_within_import(frame):
            self._waits_since = None
            raise KeyboardInterrupt
        if now - self._waits_since > IMPORT_PATIENCE_SECONDS:
            print(INTERRUPTED, file=sys.stderr, flush=True)
            os._exit(EXIT_CODE)
        _interrupt_soon()


def _interrupt_soon() -> None:
    """Send SIGINT to the main thread of ``python -m mdlearn`` a moment later."""
    _thread.start_new_thread(_send_interrupt, (_thread.get_ident(),))


def _send_interrupt(main: int) -> None:
    """Send SIGINT to the main thread of ``python -m mdlearn`` after a short pause, in a thread of its own."""
    time.sleep(POLL_SECONDS)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)  # ends what the thread waits for, too
    else:
        _thread.interrupt_main()


def _is_within_import(frame: Any) -> bool:
    """Whether a frame of ``python -m mdlearn`` is within the import of a module."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _raise_interrupt_again(lost: Any) -> None:
    """Report an exception of a finalizer or callback in ``python -m mdlearn``; raise an interrupt once more."""
    if lost.exc_type is KeyboardInterrupt:
        _interrupt_soon()  # raised here, it would be lost again
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    sys.exit(run())
