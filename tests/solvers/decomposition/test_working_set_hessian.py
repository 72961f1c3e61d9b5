"""The Hessian of a working set is that of its rows, and what two sets in a row share is computed once."""

from __future__ import annotations

import numpy as np
import pytest
from decomposition_cases import data, make_small

import mdlearn
from mdlearn.data.features import kernel_tiles
from mdlearn.data.features.kernel_tiles import KernelTiles, make_kernel_tiles
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.numerics.interruptible import finished
from mdlearn.solvers.decomposition import growth, rounds
from mdlearn.solvers.decomposition.rounds import DecompositionRounds

KERNEL = {"kernel": "rbf", "gamma": 0.3}
CASES = [("svm", "regularized"), ("svm", "free"), ("ldm", "regularized"), ("ldm", "free")]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Limits low enough that some hundred rows go through parts and working sets."""
    make_small(monkeypatch)


@pytest.mark.parametrize("objective, bias", CASES)
def test_it_is_that_of_its_rows(objective, bias, monkeypatch):
    """Every block that rounds climb on is the kernel with the bias, less what the factor takes, row by row."""
    X, y = data()
    K = np.exp(-0.3 * np.square(X[:, None] - X).sum(axis=2))
    seen, hessian = [], DecompositionRounds.hessian

    def checked(self, rows):
        known = self.within
        found, H = yield from hessian(self, rows)
        assert np.array_equal(np.sort(found), np.sort(rows))
        if self.u.shape[0] == X.shape[0]:
            expected = K[np.ix_(found, found)] + self.constant
            if objective == "ldm":
                part = (yield from self.taken(found)).astype(np.float64)
                expected -= part @ (part * self.taken_signs).T
                assert part.shape[1] == self.factor.shape[1] + (bias == "free")
            np.testing.assert_allclose(H, expected, atol=1e-5)
            seen.append(np.intersect1d(known, found).shape[0] / found.shape[0] if known.shape[0] else 0.0)
        return found, H

    monkeypatch.setattr(DecompositionRounds, "hessian", checked)
    model = mdlearn.fit(objective, X, y, bias=bias, solver="decomposition", tol=1e-6, **KERNEL)
    assert model.certificate.converged
    assert any(0.5 < share < 1.0 for share in seen), "some of a working set is new"


@pytest.mark.parametrize("objective", ["svm", "ldm"])
def test_values_between_rows_that_stay_are_not_computed_again(objective, monkeypatch):
    X, y = data()
    made, asked = [], []
    block, between, hessian = KernelTiles.block, KernelTiles.between, DecompositionRounds.hessian

    def whole(self, index, room):
        made.append(index.shape[0] ** 2)
        return block(self, index, room)

    def part(self, index, others):
        made.append(index.shape[0] * others.shape[0])
        return between(self, index, others)

    def counted(self, rows):
        asked.append(rows.shape[0] ** 2)
        return hessian(self, rows)

    monkeypatch.setattr(KernelTiles, "block", whole)
    monkeypatch.setattr(KernelTiles, "between", part)
    monkeypatch.setattr(DecompositionRounds, "hessian", counted)
    given = {"solver": "decomposition", "tol": 1e-6, **KERNEL}
    model = mdlearn.fit(objective, X, y, **given)
    assert model.certificate.converged and len(asked) > 10
    assert 0 < sum(made) < 0.6 * sum(asked)
    monkeypatch.setattr(rounds, "REPLACED_SHARE", 0.0)
    anew = mdlearn.fit(objective, X, y, **given).certificate
    assert anew.objective == pytest.approx(model.certificate.objective, rel=2e-6)


@pytest.mark.parametrize("objective", ["svm", "lsvm", "ldm"])
@pytest.mark.parametrize("most", [300, 299])
def test_few_rows_are_one_working_set(objective, most, monkeypatch):
    """Up to a number of rows their Hessian is made as a whole, once; beyond, sets are made of some of them."""
    X, y = data(m=300)
    monkeypatch.setattr(growth, "FIRST_PART_ROWS", 300)
    monkeypatch.setattr(rounds, "MOST_WORKING_ROWS", 6144)
    monkeypatch.setattr(rounds, "WHOLE_WORKING_ROWS", most)
    monkeypatch.setattr(rounds, "KEPT_VALUES_ROWS", most)
    made, block, between = [], KernelTiles.block, KernelTiles.between
    monkeypatch.setattr(KernelTiles, "block", lambda self, index, room: made.append(1) or block(self, index, room))
    monkeypatch.setattr(KernelTiles, "between", lambda self, *both: made.append(1) or between(self, *both))
    assert mdlearn.fit(objective, X, y, solver="decomposition", tol=1e-6, **KERNEL).certificate.converged
    assert (len(made) == 1) == (most == 300)


@pytest.mark.parametrize("d", [3, 20])
@pytest.mark.parametrize("single", [True, False])
def test_a_block_has_both_triangles_from_one(d, single, monkeypatch):
    monkeypatch.setattr(kernel_tiles, "TILE_LENGTH", 20)
    X, _ = data(m=300, d=d)
    index = np.random.default_rng(0).permutation(300)[:190]
    tiles = make_kernel_tiles(Kernel("rbf", {"gamma": 0.3 / d}), DenseRows(X), single)
    made, values = [], type(tiles)._values

    def counted(self, rows, side):
        made.append(values(self, rows, side))
        return made[-1]

    monkeypatch.setattr(type(tiles), "_values", counted)
    H = finished(tiles.block(index, np.empty(190 * 190, dtype=tiles.dtype)))
    expected = np.exp(-0.3 / d * np.square(X[index, None] - X[index]).sum(axis=2))
    np.testing.assert_allclose(H, expected, atol=1e-5)
    assert sum(part.size for part in made) < 0.6 * 190**2
