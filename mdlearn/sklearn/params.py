"""Params as scikit-learn passes them: seeds, and mappings whose entries can be searched over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_random_state

from mdlearn.errors import did_you_mean
from mdlearn.stages import checked_seed

FLOATS = (np.float64, np.float32)
"""What X may hold; anything else becomes the first."""
NESTED = ("params", "kernel_params", "solver_options")
"""Parameters that are mappings, whose entries get_params and set_params know as NAME__key."""


def sklearn_seed(random_state: Any) -> int:
    """Seed of the param `random_state` of scikit-learn's; the module ``numpy.random`` is the global generator."""
    return checked_seed(check_random_state(np.random) if random_state is np.random else random_state)


def param_entries(given: Any, name: str) -> dict[str, Any]:
    """Entries of an estimator's params that are a mapping or None; TypeError for anything else."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} needs to be a mapping of names to values; got {given!r:.60}")
    return dict(given)


class NestedParams:
    """Nested params of scikit-learn estimators: mappings that can be searched over, entry by entry."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters; with `deep` also the entries of those that are mappings, as ``NAME__key``.

        Parameters
        ----------
        deep : bool, default True

        Returns
        -------
        dict
            Name to value.
        """
        found: dict[str, Any] = super().get_params(deep)  # type: ignore[misc]
        if deep:
            for name in NESTED:
                given = found.get(name)
                if isinstance(given, Mapping):
                    found |= {f"{name}__{key}": value for key, value in given.items()}
        return found

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``NAME__key`` sets one entry of a parameter that is a mapping.

        Parameters
        ----------
        **params
            New values.

        Returns
        -------
        estimator
            This one.

        Raises
        ------
        ValueError
            For an unknown name.
        """
        known = self.get_params(deep=False)
        unknown = [name for name in params if name.partition("__")[0] not in known]
        if unknown:
            valid, hint = ", ".join(known), did_you_mean(unknown[0], known)
            raise ValueError(f"Invalid parameter {unknown[0]!r} for {type(self).__name__}; valid: {valid}{hint}")
        nested = {name: value for name, value in params.items() if name.split("__")[0] in NESTED and "__" in name}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})  # type: ignore[misc]
        for name, value in nested.items():
            head, key = name.split("__", 1)
            # Another mapping: the one at hand may be shared with other estimators.
            super().set_params(**{head: {**(getattr(self, head, None) or {}), key: value}})  # type: ignore[misc]
        return self
