"""The plain arguments of fit, checked: tolerance, limits, seed and names, whatever data and objective are."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn.data.validation import check_number
from mdlearn.driver.limits import Limits
from mdlearn.errors import did_you_mean

MOST_THREADS = 1024
"""A larger number is a slip: BLAS would be asked to start them all."""


class DefaultTolerance(float):
    """Type of the default of fit's argument `tol`.

    An engine with a published end of its own warns of a larger gap only when `tol` was given. The type tells the
    default from the same number given on purpose, and the signature still shows the number.
    """


DEFAULT_TOL = DefaultTolerance(1e-6)


def checked_limits(
    started: float, tol: Any, max_iter: Any, time_limit: Any, callback: Any, verbose: Any, n_threads: Any
) -> Limits:
    """Check fit's arguments tol, max_iter, time_limit, callback, verbose and n_threads; return the Limits of a fit."""
    tol_given = not isinstance(tol, DefaultTolerance)
    tol = check_number(tol, "tol", low=0.0)
    if max_iter is not None:
        max_iter = check_number(max_iter, "max_iter", low=1, integer=True)
    deadline = np.inf
    if time_limit is not None:
        deadline = started + check_number(time_limit, "time_limit", low=0.0)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback needs to be callable; got {callback!r}")
    if isinstance(verbose, (bool, np.bool_)):
        verbose = int(verbose)
    level = check_number(verbose, "verbose", low=0, integer=True)
    if n_threads is not None:
        n_threads = check_number(n_threads, "n_threads", low=1, high=MOST_THREADS, integer=True)
    return Limits(tol, tol_given, max_iter, started, deadline, callback, level, n_threads)


def checked_seed(random_state: Any) -> int:
    """Check fit's argument `random_state` and return a seed >= 0: None is 0, a generator gives its next number."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(check_number(random_state, "random_state", low=0, integer=True))


def checked_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value`, an argument of fit, or raise the ValueError that lists what the argument `name` can be."""
    if not isinstance(value, str) or value not in choices:
        told = ", ".join(choices)
        raise ValueError(f"{name} {value!r} is not possible here; give one of {told}{did_you_mean(value, choices)}")
    return value
