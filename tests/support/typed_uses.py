"""Uses of the public names whose types mypy checks, as a program of a user has them; tests run it, too.

`[tool.mypy]` in pyproject.toml names this file. Every ``type: ignore`` is a wrong use that has to be found: one that is
not needed is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, assert_type

import numpy as np

import mdlearn
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.proof import State
from mdlearn.objectives.base import Parameter, Terms


class Wide(mdlearn.Objective):
    """An objective as a plugin declares it."""

    name: ClassVar[str] = "wide"
    parameters: ClassVar[dict[str, Parameter]] = {"C": Parameter(1.0, "weight of the summed loss")}

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        return Terms(loss=(HingeTerm(params["C"], threshold=2.0),))


class Cosine(mdlearn.KernelFunction):
    """A kernel as a plugin declares it."""

    name: ClassVar[str] = "cosine"

    def values(self, params: dict[str, float], A: np.ndarray, B: np.ndarray) -> np.ndarray:
        lengths = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
        cosines: np.ndarray = A @ B.T / np.maximum(lengths, 1e-12)
        return cosines


@mdlearn.hookimpl
def mdlearn_objectives() -> Iterable[type]:
    return [Wide]


def watched(states: list[State]) -> Callable[[State], bool]:
    def look(state: State) -> bool:
        assert_type(state.gap, float)
        states.append(state)
        return state.iteration > 1000

    return look


def fits(X: np.ndarray, y: np.ndarray) -> mdlearn.Model:
    states: list[State] = []
    model = mdlearn.fit("ldm", X, y, C=10.0, kernel="rbf", gamma=0.5, callback=watched(states), sample_weight=None)
    assert_type(model, mdlearn.Model)
    assert_type(mdlearn.fit(Wide, X.tolist(), y.tolist(), C=2.0), mdlearn.Model)
    assert_type(mdlearn.fit(Wide(C=2.0), X, y, class_weight="balanced", time_limit=10.0, n_threads=1), mdlearn.Model)
    mdlearn.fit("svm", X, y, kernel=lambda A, B: A @ B.T, solver_options={}, warm_start=None)
    if not states:
        mdlearn.fit("svm", X, y, tol="small")  # type: ignore[arg-type]
        mdlearn.fit("svm", X, y, "linear")  # type: ignore[call-arg]
        mdlearn.fit("svm", X)  # type: ignore[call-arg]
        mdlearn.fitt("svm", X, y)  # type: ignore[attr-defined]
    return model


def reads(model: mdlearn.Model, X: np.ndarray, y: np.ndarray) -> float:
    assert_type(model.predict(X), np.ndarray)
    assert_type(model.decision_function(X), np.ndarray)
    assert_type(model.margins(X, y, normalized=True), np.ndarray)
    assert_type(model.score(X, y), float)
    assert_type(model.dual_coef_, np.ndarray)
    assert_type(model.intercept_, np.ndarray)
    assert_type(model.params, dict[str, Any])
    certificate = model.certificate
    assert_type(certificate, mdlearn.Certificate)
    assert_type(certificate.converged, bool)
    assert_type(certificate.parts, tuple[mdlearn.Certificate, ...])
    return certificate.objective - certificate.lower_bound


def lists() -> list[str]:
    names: Sequence[str] = [*mdlearn.list_objectives(), *mdlearn.list_solvers(), *mdlearn.list_kernels()]
    assert_type([plugin.state for plugin in mdlearn.list_plugins()], list[str])
    return list(names)


def statistics(model: mdlearn.Model, X: np.ndarray, y: np.ndarray) -> float:
    z = model.margins(X, y)
    assert_type(mdlearn.margins.mean(z), float)
    assert_type(mdlearn.margins.variance(z, np.ones(len(z))), float)
    values, share = mdlearn.margins.cumulative_curve(z)
    assert_type(values, np.ndarray)
    return float(share[-1])


def selects(X: np.ndarray, y: np.ndarray) -> mdlearn.Model | None:
    path = assert_type(mdlearn.fit_path("ldm", X, y, {"C": [1.0, 10.0]}, kernel="rbf"), mdlearn.Path)
    assert_type(path[0], mdlearn.Model)
    assert_type(path.gap, np.ndarray)
    assert_type(mdlearn.cross_validate("ldm", X, y, cv=3).mean, float)
    chosen = mdlearn.select("ldm", X, y, {"C": [1.0, 10.0]}, cv=3)
    assert_type(chosen.best_params, dict[str, Any])
    return chosen.model


def keeps(model: mdlearn.Model, folder: Path) -> mdlearn.Model:
    model.save(folder / "model.npz")
    return assert_type(mdlearn.load(folder / "model.npz"), mdlearn.Model)


def main(folder: Path) -> tuple[mdlearn.Model, mdlearn.Model]:
    """Run everything once on small data."""
    X, y = assert_type(mdlearn.datasets.xor(60, random_state=1), tuple[np.ndarray, np.ndarray])
    model = fits(X, y)
    assert reads(model, X, y) >= 0 and statistics(model, X, y) == 1.0 and "ldm" in lists()
    assert isinstance(Cosine.name, str) and selects(X, y) is not None
    return model, keeps(model, folder)
