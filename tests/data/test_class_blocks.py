"""Pairs of classes share the kernel values within each class: each is computed once, and none changes."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features.kernels import Kernel


def classes_in_a_row(seed: int = 0, k: int = 6, m: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Rows around k centres, in mixed order, with labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(m) % k)
    return rng.normal(size=(m, 4)) + 1.5 * rng.normal(size=(k, 4))[y], y


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("C", [1.0, 200.0])
def test_each_value_is_computed_once(C: float, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of k classes of n rows there are k n^2 values within classes, and k (k - 1) / 2 n^2 between them.

    Of a stack of pairs, which these are with a small C, all are one matrix, whose halves are the same but for blocks on
    its diagonal.
    """
    X, y = classes_in_a_row()
    k, n = 6, 40
    made, tile = [], Kernel.tile

    def counted(self: Kernel, *given: object) -> np.ndarray:
        made.append(values := tile(self, *given))
        return values

    monkeypatch.setattr(Kernel, "tile", counted)
    mdlearn.fit("svm", X, y, C=C, kernel=kernel, gamma=0.3, multiclass="ovo")
    stacked = C == 1.0 and kernel == "rbf"
    most = (k * n) ** 2 - 1 if stacked else (k + k * (k - 1) // 2) * n * n
    assert sum(values.size for values in made) <= most


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_are_those_of_two_classes(weighted: bool) -> None:
    """The values of every pair lie between the bounds of a fit to the rows of its two classes alone."""
    X, y = classes_in_a_row(seed=1, k=3, m=90)
    weights = np.where(np.arange(90) % 7 == 0, 0.0, 1.0 + np.arange(90) % 3) if weighted else None
    given = {"kernel": "rbf", "gamma": 0.4, "lambda1": 5.0, "lambda2": 2.0, "C": 2.0, "tol": 1e-9}
    together = mdlearn.fit("ldm", X, y, multiclass="ovo", sample_weight=weights, **given)
    total = 0.0
    for p, pair in enumerate([(0, 1), (0, 2), (1, 2)]):
        own = np.isin(y, pair)
        alone = mdlearn.fit("ldm", X[own], y[own], sample_weight=None if weights is None else weights[own], **given)
        total += alone.certificate.objective
        np.testing.assert_allclose(together.duals[p][own], alone.duals[0], atol=1e-4)
        assert not together.duals[p][~own].any()
    assert together.certificate.objective == pytest.approx(total, rel=1e-8)
