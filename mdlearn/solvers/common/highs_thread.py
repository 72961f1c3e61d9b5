"""Calls of HiGHS in a thread, so that they can be ended.

HiGHS is one long call that knows neither Ctrl-C nor callbacks. It runs in a thread of its own, without the
interpreter's lock, so that Ctrl-C, `time_limit` and callbacks end the fit within a few hundredths of a second. The call
itself cannot be ended from outside: it gets a time limit, and is begun again with a longer one while somebody waits for
it. So a call that nobody waits for any more goes on for at most `CALL_GROWTH` times as long as it has run. The
interpreter waits for it as it exits, but not long: a call that ends while modules are torn down aborts the process.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from mdlearn.forms.certificates.separability import ACCURACY

FIRST_CALL_SECONDS, CALL_GROWTH = 10.0, 3.0
"""Seconds that the first call may take, and how many times longer each further one may take than the one before."""
EXIT_SECONDS = 1.0
"""Seconds that an exit of the interpreter waits for a call that nobody waits for any more."""
HEARTBEAT = 0.02
"""Seconds between two looks at the thread."""
STATUS_SOLVED, LATE, INFEASIBLE, FAILED = 0, 1, 2, 4
"""Status codes of `scipy.optimize.linprog`."""
LONGEST_WALK = 20
"""Iterations per row and column of the program, beyond which HiGHS is going round in circles (its clean-up after the
crossover does, on repeated rows); HiGHS is given them and a thousand more."""
SMALLEST_COLUMN = 1e-300
"""Largest entry of a column below which it counts as zeros: its inverse overflows."""


def highs(method: str, cost: np.ndarray, A: Any, rhs: np.ndarray, bounds: np.ndarray, seconds: float) -> Any:
    """Minimise cost . x by HiGHS, A x = rhs within bounds, for so many seconds at most, for `run_highs_in_thread`."""
    from scipy.optimize import linprog

    most = 1000 + LONGEST_WALK * sum(A.shape)
    tolerances = {"primal_feasibility_tolerance": ACCURACY, "dual_feasibility_tolerance": ACCURACY}
    options = {"maxiter": most, "time_limit": seconds, **tolerances}
    found = linprog(cost, A_eq=A, b_eq=rhs, bounds=bounds, method=method, options=options)
    if found.status == LATE and found.nit >= most:
        found.status = FAILED  # more time would not help
    return found


def run_highs_in_thread(call: Callable[[float], Any]) -> Generator[None, None, Any]:
    """Run call(seconds), one of HiGHS, in a thread, with longer and longer limits; give control back meanwhile."""
    found: list[Any] = []
    wanted, over = threading.Event(), threading.Event()
    wanted.set()

    def wait_at_exit() -> None:
        over.wait(EXIT_SECONDS)

    def work() -> None:
        try:
            seconds = FIRST_CALL_SECONDS
            result = call(seconds)
            while result.status == LATE and wanted.is_set():
                seconds *= CALL_GROWTH
                result = call(seconds)
            found.append(result)
        except Exception as error:  # raised again below, where somebody can catch it
            found.append(error)
        finally:
            over.set()
            atexit.unregister(wait_at_exit)

    threading.Thread(target=work, name="mdlearn-linprog", daemon=True).start()
    try:
        while not over.wait(HEARTBEAT):
            yield
    finally:
        wanted.clear()
        if not over.is_set():
            atexit.register(wait_at_exit)
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]
