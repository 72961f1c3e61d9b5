"""Operations of second-order steps over a form, the unit in which engines say what a fit costs them.

An operation is one floating-point operation of a product of dense matrices; work on single entries counts by the time
that it takes, in units of those.
"""

from __future__ import annotations

import math

from mdlearn.data.features.basis import BasisFeatures
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import Rows
from mdlearn.forms.margin import MarginForm
from mdlearn.solvers.systems.system_choice import prefers_block_system
from mdlearn.solvers.systems.weighted_gram import weighted_gram_operations

STEPS_OF_A_FIT = 20
"""Second-order steps of a usual fit whose loss has kinks or bends; one system does where it is quadratic."""
SPARSE_ENTRY = 1400.0
"""Operations of all sweeps over a stored entry of sparse rows, per second-order step that they replace: 80 sweeps, 350
operations in the time of a visit, 20 steps."""
STEP_OPERATIONS = 1e10
"""Operations of a second-order step, about a second, from which cheap steps are better, however many entries: large
samples take fewer of those."""
MATRIX_ROWS = 8000
"""Rows up to which the whole matrix of a kernel is cheaper than columns of it, at small gaps at least."""
WIDE_COLUMNS = 5000
"""Columns (or rows) up to which a nearly hard margin is left to second-order steps."""
NARROW_COLUMNS = 500
"""Columns of sparse rows, or of blocks of rows, up to which second-order steps are always cheap."""
GENTLE_LOSS = 1e3
"""Weight of a term times k(x, x) up to which steps without a matrix are a match for a factorisation."""
STIFF_BOX = 1e4
"""Box width in units of a typical multiplier, 1 / k(x, x), beyond which coordinate steps are too short."""


def second_order_operations(form: MarginForm) -> int:
    """Second-order steps of operations that a fit takes: one where all losses are quadratic."""
    return 1 if form.quadratic else STEPS_OF_A_FIT


def step_operations(form: MarginForm) -> float:
    """Operations of a second-order step: a matrix of columns, rows or blocks is made, and factored."""
    features, rows = form.features, form.features.rows
    m, d = map(float, rows.shape)
    if not isinstance(features, LinearFeatures):
        return m**3 / 3.0
    if not rows.sparse:
        return m * d * min(m, d)
    if prefers_block_system(form):
        return float(rows.n_entries) * rows.coupled
    if isinstance(rows, CsrRows):
        # Where means outweigh a column's spread, centring makes the rows of the first matrix dense.
        first = m * d * d if form.varied else 0.0
        factor = d**3 / (3.0 if d <= m else 1.0)  # over fewer rows than columns a Gram matrix takes longer
        return weighted_gram_operations(rows) + factor + first / STEPS_OF_A_FIT
    return m * d * d


def dense_step_operations(features: LinearFeatures) -> float:
    """Operations of a second-order step as if all entries of the rows were stored."""
    m, d = features.n_rows, features.width
    return float(m) * d * min(m, d)


def cheap_step_operations(rows: Rows) -> float:
    """Operations of the sweeps, or products, over sparse rows that replace a second-order step."""
    return min(STEP_OPERATIONS, SPARSE_ENTRY * rows.n_entries)


def columns_of_kernel_operations(form: MarginForm, rows: float) -> float:
    """Operations that replace a second-order step on a kernel's matrix by columns of it; `rows`: where both are equal.

    A step on the matrix is cubic in the rows, one with so many columns as a problem needs is quadratic.
    """
    m = float(form.features.n_rows)
    return m * m * rows / 3.0 + m


def largest_loss_weight(form: MarginForm) -> float:
    """Largest weight of a loss term, which makes operations of cheap steps many."""
    return max((t.weight for column in form.columns for t in column.terms), default=0.0)


def is_nearly_hard(form: MarginForm) -> bool:
    """Whether losses over explicit rows are so steep that cheap operations are too many, and second-order steps few."""
    features = form.features
    assert isinstance(features, LinearFeatures)
    if min(features.width, features.n_rows) > WIDE_COLUMNS:
        return False
    if any(column.hard for column in form.columns):
        return True
    if features.rows.made_when_asked or dense_step_operations(features) > STEP_OPERATIONS:
        return False  # a claim is not worth the rows
    counts = form.columns[0].counts
    return largest_loss_weight(form) * float(counts @ features.squares()) > STIFF_BOX * float(counts.sum())


def kernel_stiffness(form: MarginForm) -> float:
    """Largest weight of a loss term times k(x, x), by which operations on a kernel's matrix are many or few.

    In a basis, whose inner products are squares of the matrix, the variance counts as well, times k(x, x)^2.
    """
    weight, features = largest_loss_weight(form), form.features
    if isinstance(features, BasisFeatures):
        weight = max(weight, *(column.kappa for column in form.columns))
    if weight in (0.0, math.inf):
        return weight
    assert isinstance(features, KernelFeatures | BasisFeatures)
    return weight * features.typical_square(form.columns[0].counts)
