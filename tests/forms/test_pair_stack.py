"""A stack of pairs of classes: its certificates are those of each pair's own form, whatever multipliers come."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.data.class_pairs import ClassPairPositions
from mdlearn.data.features.gram import ClassGramMatrices
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.certified_solution import certify
from mdlearn.forms.joint.pair_stack import PairPoint, PairStack, can_stack_pair
from mdlearn.forms.losses import HingeTerm, LogisticTerm, Terms
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics.interruptible import finished

SIZES = np.array([9, 1, 14, 6])
BIASES = ("free", "regularized", "none")
KERNEL = Kernel("rbf", {"gamma": 0.4})


def rows_by_class(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    m = int(SIZES.sum())
    return rng.normal(size=(m, 3)) + np.repeat(rng.normal(size=(4, 3)), SIZES, axis=0), rng.uniform(0.5, 3.0, m)


def stack_of(X: np.ndarray, counts: np.ndarray, bias: str, units: tuple[float, ...] = (1.0, 3.0)) -> PairStack:
    """Pairs with weights and units of their own."""
    blocks = ClassGramMatrices(KERNEL, DenseRows(X), SIZES)
    terms = [Terms(loss=(HingeTerm(1.0 + 0.5 * j, 1, 1.0 + 0.1 * j),), unit=units[j % 2]) for j in range(6)]
    pairs = ClassPairPositions(np.repeat(np.arange(4), SIZES), 4, in_order=False)
    stack = PairStack(KernelFeatures(blocks.rows, blocks.kernel, blocks), pairs, counts, terms, bias)
    finished(stack.features.gram())
    return stack


def own_forms(X: np.ndarray, counts: np.ndarray, bias: str, units: tuple[float, ...] = (1.0, 3.0)) -> list[MarginForm]:
    """The same pairs, each as a form over copies of its own rows."""
    codes, forms = np.repeat(np.arange(4), SIZES), []
    for j, (low, high) in enumerate(zip(*np.triu_indices(4, 1))):
        own = np.r_[np.flatnonzero(codes == low), np.flatnonzero(codes == high)]
        y = np.where(codes[own] == high, 1.0, -1.0)
        column = Column(y, counts[own], 0.0, 0.0, (HingeTerm(1.0 + 0.5 * j, 1, 1.0 + 0.1 * j),))
        features = KernelFeatures(DenseRows(X[own]), KERNEL)
        finished(features.gram())
        forms.append(MarginForm(features, (column,), bias, unit=units[j % 2]))
    return forms


def multipliers(stack: PairStack, seed: int) -> np.ndarray:
    """Signed multipliers near each other's sums, some of them beyond their bounds and at these."""
    rng = np.random.default_rng(seed)
    return rng.choice([0.0, 0.02, 0.05, -0.5, 0.12], stack.low.shape[0]) * (stack.high + stack.low)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_certificates_are_those_of_each_pair_alone(bias: str, seed: int) -> None:
    X, counts = rows_by_class(seed)
    stack = stack_of(X, counts, bias)
    u = multipliers(stack, seed)
    found = stack.certified(PairPoint(0, 6, u), 1e6)
    assert len(found) >= 4
    for one in found:
        j, ours = one.j, one.solution
        form = own_forms(X, counts, bias)[j]
        column, own = form.columns[0], u[stack.starts[j] : stack.starts[j + 1]]
        told = certify(form, column, Point((column.y * own)[None], np.zeros_like(own)), 1e6)[1]
        for name in ("objective", "lower_bound", "gap"):
            assert getattr(ours.certificate, name) == pytest.approx(getattr(told.certificate, name), rel=1e-9)
        assert one.at_zero == pytest.approx(form.unit * column.at_zero, rel=1e-12)
        np.testing.assert_allclose(ours.alpha, told.alpha, atol=1e-12)
        np.testing.assert_allclose(ours.beta, told.beta, atol=1e-12)
        assert ours.intercept == pytest.approx(told.intercept, abs=1e-9)
        assert ours.norm == pytest.approx(told.norm, rel=1e-9)
        assert ours.coef is None and told.coef is None and ours.extras == told.extras


@pytest.mark.parametrize("bias", BIASES)
def test_some_pairs_have_the_certificates_that_they_have_among_all(bias: str) -> None:
    X, counts = rows_by_class(5)
    stack = stack_of(X, counts, bias)
    u = multipliers(stack, 5)
    everything = {one.j: one.solution for one in stack.certified(PairPoint(0, 6, u), 1e6)}
    some = stack.certified(PairPoint(2, 5, u[stack.starts[2] : stack.starts[5]]), 1e6)
    assert [one.j for one in some] == [j for j in everything if 2 <= j < 5]
    for one in some:
        assert one.solution.certificate == everything[one.j].certificate
        np.testing.assert_array_equal(one.solution.alpha, everything[one.j].alpha)


@pytest.mark.parametrize("bias", BIASES)
def test_the_optimum_lies_between(bias: str) -> None:
    """The optimum is what the interior point method proves of rows of two classes alone."""
    X, counts = rows_by_class(7)
    stack = stack_of(X, counts, bias, units=(1.0, 1.0))
    codes = np.repeat(np.arange(4), SIZES)
    for one in stack.certified(PairPoint(0, 6, multipliers(stack, 7)), 1e6):
        own = np.isin(codes, np.array(np.triu_indices(4, 1))[:, one.j])
        given = {"kernel": "rbf", "gamma": 0.4, "bias": bias, "sample_weight": counts[own], "C": 1.0 + 0.5 * one.j}
        # A threshold of t is one of 1 for w / t: the objective has t^2, and the weight is C / t.
        t = 1.0 + 0.1 * one.j
        given["C"] /= t
        best = mdlearn.fit("svm", X[own], codes[own], solver="interior", tol=1e-9, **given).certificate
        told = one.solution.certificate
        assert told.lower_bound <= t * t * best.objective and t * t * best.lower_bound <= told.objective


def test_pairs_that_miss_the_gap_have_no_answer() -> None:
    X, counts = rows_by_class()
    stack = stack_of(X, counts, "free")
    u = multipliers(stack, 0)
    gaps = {one.j: one.solution.certificate.gap for one in stack.certified(PairPoint(0, 6, u), 1e6)}
    tol = sorted(gaps.values())[1]
    assert [one.j for one in stack.certified(PairPoint(0, 6, u), tol)] == [j for j in gaps if gaps[j] <= tol]
    assert not stack.certified(PairPoint(0, 6, np.zeros_like(u)), 1e6)  # no better than multipliers 0


def test_points_of_other_shapes_are_faults() -> None:
    stack = stack_of(*rows_by_class(), "free")
    u = multipliers(stack, 0)
    assert stack.fault(PairPoint(0, 6, u)) is None
    assert "shape" in stack.fault(PairPoint(0, 5, u))
    assert "NaN" in stack.fault(PairPoint(0, 6, np.full_like(u, np.nan)))
    for point in (None, PairPoint(3, 3, u[:0]), PairPoint(0, 7, u), PairPoint(-1, 2, u)):
        assert "PairPoint" in stack.fault(point)


@pytest.mark.parametrize(
    "terms, can",
    [
        (Terms(loss=(HingeTerm(2.0),)), True),
        (Terms(loss=(HingeTerm(2.0, -1, -1.0),)), True),
        (Terms(loss=(HingeTerm(2.0, power=2),)), False),
        (Terms(loss=(HingeTerm(np.inf),)), False),
        (Terms(loss=(HingeTerm(0.0),)), False),
        (Terms(loss=(HingeTerm(2.0, 1, -1.0),)), False),
        (Terms(loss=(LogisticTerm(2.0),)), False),
        (Terms(loss=(HingeTerm(2.0), HingeTerm(2.0, -1, -1.0))), False),
        (Terms(variance=1.0, loss=(HingeTerm(2.0),)), False),
        (Terms(mean=1.0, loss=(HingeTerm(2.0),)), False),
        (Terms(ridge=0.0, loss=(HingeTerm(2.0),)), False),
        (Terms(penalty=1.0, loss=(HingeTerm(2.0),)), False),
        (Terms(), False),
    ],
)
def test_what_a_stack_can_hold(terms: Terms, can: bool) -> None:
    assert can_stack_pair(terms) is can
