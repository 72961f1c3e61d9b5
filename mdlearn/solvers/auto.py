"""Automatic choice, ``solver="auto"``: a table of shapes and needs, the first row that fits decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdlearn.data.features.basis import BasisFeatures
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.class_contrasts import ContrastRows
from mdlearn.data.rows.csr_rows import CsrRows, worth_csr_copy
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import CURVED
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.problem import Form, Problem, Several, problems_of
from mdlearn.solvers.coordinate_descent.solver import CoordinateDescent
from mdlearn.solvers.decomposition.solver import KernelDecomposition
from mdlearn.solvers.hybrid.newton_start import ROWS_PER_COLUMN
from mdlearn.solvers.hybrid.solver import Hybrid
from mdlearn.solvers.interior_point.solver import Interior
from mdlearn.solvers.linear_program import LinearProgram
from mdlearn.solvers.newton.solver import Newton
from mdlearn.solvers.newton_cg.solver import NewtonCG
from mdlearn.solvers.proximal_gradient.solver import APG
from mdlearn.solvers.quadratic.solver import Direct
from mdlearn.solvers.systems.choice import prefers_blocks
from mdlearn.solvers.systems.weighted_gram import weighted_gram_operations

WIDE_COLUMNS = 5000
"""Columns (or rows) beyond which the interior point's matrices cost more than coordinate descent's epochs."""
NARROW_COLUMNS = 500
"""Columns of sparse rows, or of blocks of rows, up to which second-order steps are always cheap."""
PROGRAM_ENTRIES, PROGRAM_COLUMNS = 2e5, 1500
"""Entries of dense rows from which a linear program takes seconds, and columns up to which steps by matrices do not."""
MANY_COLUMNS = 400
"""Dense columns from which hinges leave many rows on a kink."""
GRAM_STEP_ROWS = 500
"""Dense rows, fewer than their columns, up to which steps over a Gram matrix cost no more than a few products."""
CACHED_ENTRIES = 2e6
"""Stored entries of wide sparse rows up to which plain sweeps are the fastest."""
CHEAP = 1e8
"""Rows times columns squared up to which second-order steps are always cheap."""
STEP_OPERATIONS = 1e10
"""Operations of a second-order step up to which it is better than many cheap ones: about a second."""
NEWTON_STEPS_OF_A_FIT, SWEEPS = 20, 80
"""Second-order steps of a usual fit, and sweeps of coordinate descent to the same gap."""
ENTRY = 350
"""Operations on dense matrices in the time that a sweep takes for a stored entry."""
MATRIX_ROWS = 8000
"""Rows up to which the whole matrix of a kernel is cheaper than columns of it, at small gaps at least."""
SQUARED_ROWS = 500
"""The same for one gentle squared hinge, beside Newton steps, which factor the matrix: 0.07 to 0.8 of their time on 12
real sets of 768 to 5,000 rows at a gap of 1e-6 (asv_bench/kernels.py --alone lsvm)."""
GENTLE_LOSS = 1e3
"""Weight of a term times k(x, x) up to which steps without a matrix are a match for a factorisation."""
STIFF_BOX = 1e4
"""Box width in units of a typical multiplier, 1 / k(x, x), beyond which coordinate steps are too short."""
STEEP = 1e8
"""The same for squared hinges: beyond, margins from a Gram matrix lack the digits that Newton steps need."""


@dataclass(frozen=True)
class Rule:
    """Rule of ``solver="auto"``: when `fits`, use `solver`, because of `reason`; `takes`: it takes all that fits.

    `alone`: not for the points of a path, which share a kernel's matrix.
    """

    solver: str
    reason: str
    fits: Callable[[MarginForm], bool]
    takes: bool = False
    alone: bool = False


def _auto_small_matrices(form: MarginForm) -> bool:
    """Condition in ``solver="auto"``: matrices of the rows, columns or blocks are small, or a kernel needs one."""
    explicit = _auto_dense_rows(form) or _auto_narrow_rows(form) or _auto_blocks(form, WIDE_COLUMNS)
    return explicit or isinstance(form.features, KernelFeatures)


def _auto_proximal(form: Form) -> bool:
    """Rule of ``solver="auto"`` for proximal gradients: joint problems, and penalties that the engine takes."""
    return isinstance(form, Problem) or ((form.joint or form.penalty > 0) and APG().refusal(form) is None)


def _auto_linear_program(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for linear programs that HiGHS can solve."""
    return LinearProgram().refusal(form) is None


def _auto_large_program(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for large linear programs of few columns, which interior points solve."""
    features = form.features
    if form.ridge > 0 or not isinstance(features, LinearFeatures) or features.width > PROGRAM_COLUMNS:
        return False
    return Interior().refusal(form) is None and features.n_entries >= PROGRAM_ENTRIES


def _auto_class_contrasts(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for joint problems of several classes, whose rows are contrasts of classes."""
    features = form.features
    return isinstance(features, LinearFeatures) and isinstance(features.rows, ContrastRows)


def _auto_few_contrasts(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for contrasts of classes that are few enough for second-order steps."""
    # Sweeps crawl on unscaled rows of such problems, however small.
    return _auto_class_contrasts(form) and form.features.n_rows * form.features.width**2 <= CHEAP


def _auto_direct(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for quadratic objectives that a direct factorisation solves."""
    # Where sweeps do not get there, one large factorisation does.
    return Direct().refusal(form) is None and (_auto_small_matrices(form) or not CoordinateDescent().reaches(form))


def _auto_newton(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for curved losses that Newton's method takes."""
    return not CURVED.isdisjoint(form.kinds) and Newton().refusal(form) is None


def _step_operations(form: MarginForm) -> float:
    """Operations of a second-order step over explicit rows, for ``solver="auto"``; 0 where that is of another kind."""
    features = form.features
    if not isinstance(features, LinearFeatures) or prefers_blocks(form):
        return 0.0
    m, d = features.n_rows, features.width
    return float(m) * d * min(m, d)


def _auto_large_newton(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for curved losses whose second-order steps cost too much."""
    large = _step_operations(form) > STEP_OPERATIONS and not _newton_is_cheaper_than_sweeps(form)
    return _auto_newton(form) and form.ridge > 0 and large and APG().refusal(form) is None


def _auto_folded_columns(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for large features by a basis whose columns are folded."""
    # Products with such columns are cheap, their matrices are not.
    features = form.features
    folded = isinstance(features, BasisFeatures) and features.rows.folded
    return folded and form.ridge > 0 and _step_operations(form) > STEP_OPERATIONS and APG().refusal(form) is None


def _auto_squared_hinge(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for smooth losses with small matrices and moderate weights."""
    smooth = all(column.terms for column in form.columns) and Newton().refusal(form) is None
    return smooth and _auto_small_matrices(form) and _kernel_stiffness(form) <= STEEP


def _auto_dense_rows(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for dense rows with few columns or few rows."""
    features = form.features
    dense = isinstance(features, LinearFeatures) and not features.rows.sparse
    return dense and min(features.width, features.n_rows) <= WIDE_COLUMNS


def _auto_narrow_rows(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for sparse rows with few columns, or with Newton steps cheaper than sweeps."""
    features = form.features
    if not isinstance(features, LinearFeatures) or not features.rows.sparse:
        return False
    return features.width <= NARROW_COLUMNS or _newton_is_cheaper_than_sweeps(form)


def _newton_is_cheaper_than_sweeps(form: MarginForm) -> bool:
    """Whether second-order steps over CSR rows cost less than what ``solver="auto"`` takes else: sweeps or products."""
    features = form.features
    if not isinstance(features, LinearFeatures) or not isinstance(features.rows, CsrRows) or prefers_blocks(form):
        return False
    rows, (m, d) = features.rows, features.rows.shape
    if d > min(m, WIDE_COLUMNS):
        return False
    # Where means outweigh a column's spread, centring makes the rows of the first matrix dense.
    first = float(m) * d * d if any(column.kappa > 0 for column in form.columns) else 0.0
    step = weighted_gram_operations(rows) + d**3 / 3.0 + first / NEWTON_STEPS_OF_A_FIT
    return step <= min(STEP_OPERATIONS, SWEEPS * ENTRY * rows.X.nnz / NEWTON_STEPS_OF_A_FIT)


def _auto_blocks(form: MarginForm, most: int = NARROW_COLUMNS) -> bool:
    """Rule of ``solver="auto"`` for explicit rows that lie in blocks of few columns."""
    return prefers_blocks(form) and isinstance(form.features, LinearFeatures) and form.features.rows.coupled <= most


def _auto_hard_margin(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for hard margins over explicit rows with few columns or few rows."""
    features = form.features
    hard = any(column.hard for column in form.columns)
    return hard and isinstance(features, LinearFeatures) and min(features.width, features.n_rows) <= WIDE_COLUMNS


def _auto_sparse_rows(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for sparse rows that coordinate descent takes."""
    features = form.features
    sparse = isinstance(features, LinearFeatures) and features.rows.sparse
    return sparse and CoordinateDescent().refusal(form) is None


def _largest_loss_weight(form: MarginForm) -> float:
    """Largest weight of a loss term, by which ``solver="auto"`` recognises steep problems."""
    return max((t.weight for column in form.columns for t in column.terms), default=0.0)


def _kernel_stiffness(form: MarginForm) -> float:
    """Largest weight of a loss term times k(x, x), for ``solver="auto"``; 0 for explicit rows."""
    features = form.features
    if not isinstance(features, KernelFeatures):
        return 0.0
    return _largest_loss_weight(form) * features.typical_square(form.columns[0].counts)


def _auto_decomposition(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for decomposition: a kernel's matrix costs more than the columns that change."""
    return form.features.n_rows > MATRIX_ROWS and KernelDecomposition().refusal(form) is None


def _auto_squared_kernel(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for squared hinges over kernels: a few columns cost less than factors of the matrix."""
    if form.features.n_rows <= SQUARED_ROWS or KernelDecomposition().refusal(form) is not None:
        return False
    return form.kinds == {"squared"} and _kernel_stiffness(form) <= GENTLE_LOSS


def _auto_newton_cg(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for smooth losses: factors of a kernel's matrix cost more than products with it."""
    gentle = form.features.n_rows > MATRIX_ROWS and _kernel_stiffness(form) <= GENTLE_LOSS
    return gentle and NewtonCG().refusal(form) is None


def _auto_stiff_kernel(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for kernels with large weights of the losses."""
    return _kernel_stiffness(form) > STIFF_BOX


def _auto_nearly_hard(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for explicit rows whose losses are nearly a hard margin."""
    features = form.features
    if not isinstance(features, LinearFeatures) or min(features.width, features.n_rows) > WIDE_COLUMNS:
        return False
    if features.rows.made_when_asked:  # a choice is not worth that
        return False
    counts = form.columns[0].counts
    steep = _largest_loss_weight(form) * float(counts @ features.squares()) > STIFF_BOX * float(counts.sum())
    return steep and _step_operations(form) <= STEP_OPERATIONS


def _auto_hybrid(form: MarginForm) -> bool:
    """Rule of ``solver="auto"`` for the hybrid engine: forms that it takes and no other suits better."""
    taken = Hybrid().refusal(form) is None
    return taken and not (_auto_many_kinks(form) or _auto_text_rows(form) or _auto_few_rows(form))


def _auto_few_rows(form: MarginForm) -> bool:
    """Condition in ``solver="auto"``: a logistic loss over so few dense rows that conjugate gradients take longer."""
    rows, width = form.features.rows, form.features.width
    return isinstance(rows, DenseRows) and rows.shape[0] <= min(GRAM_STEP_ROWS, width) and _auto_newton(form)


def _auto_many_kinks(form: MarginForm) -> bool:
    """Condition in ``solver="auto"``: hinges over many dense columns end with as many rows on a kink."""
    rows, width = form.features.rows, form.features.width
    if not MANY_COLUMNS < width <= rows.shape[0] < ROWS_PER_COLUMN * width:
        return False
    kinks = "hinge" in form.kinds and not any(column.kappa > 0 for column in form.columns)
    return kinks and isinstance(rows, DenseRows) and not worth_csr_copy(rows)


def _auto_text_rows(form: MarginForm) -> bool:
    """Condition in ``solver="auto"``: rows are sparse, wide and too many for the cache: plain sweeps are better."""
    rows = form.features.rows
    large = isinstance(rows, CsrRows) and rows.shape[1] > WIDE_COLUMNS and rows.X.nnz > CACHED_ENTRIES
    return large and _auto_sparse_rows(form)


RULES = (
    Rule("hybrid", "one hinge or logistic loss a row: coordinate descent, then Newton steps", _auto_hybrid, takes=True),
    Rule("decomposition", "kernel with many rows: working sets, no matrix of all rows", _auto_decomposition),
    Rule("decomposition", "squared hinge over a kernel: working sets, no factors", _auto_squared_kernel, alone=True),
    Rule("newton-cg", "kernel with many rows, loss without kinks: conjugate gradients, no matrix", _auto_newton_cg),
    Rule("apg", "a penalty, several classes as one problem, or a gradient of its own: proximal steps", _auto_proximal),
    Rule("interior", "hinge without the squared norm, many dense entries: second-order steps", _auto_large_program),
    Rule("linprog", "hinge without the squared norm: a linear program", _auto_linear_program),
    Rule("interior", "small joint problem of several classes: second-order steps", _auto_few_contrasts),
    Rule("cd", "large joint problem of several classes: O(nnz) per update", _auto_class_contrasts),
    Rule("apg", "linear kernel columns of many sparse rows: steps without matrices", _auto_folded_columns),
    Rule("direct", "no loss or squared loss: one linear system", _auto_direct),
    Rule("apg", "logistic or given loss, many rows and columns: steps without matrices", _auto_large_newton),
    Rule("newton", "logistic or given loss: a few linear systems", _auto_newton),
    Rule("newton", "squared hinge: a few linear systems over the active rows", _auto_squared_hinge),
    Rule("interior", f"dense rows with at most {WIDE_COLUMNS} columns or rows: second-order steps", _auto_dense_rows),
    Rule(
        "interior",
        f"rows of blocks of at most {NARROW_COLUMNS} columns: second-order steps, block by block",
        _auto_blocks,
    ),
    Rule("interior", "sparse rows with few columns for their entries: second-order steps", _auto_narrow_rows),
    Rule("interior", "hard margin: constraints", _auto_hard_margin),
    Rule("interior", f"C k(x, x) beyond {STIFF_BOX:g}, few rows or columns: nearly a hard margin", _auto_nearly_hard),
    Rule("cd", "sparse rows with many columns: O(nnz) per update", _auto_sparse_rows),
    Rule("interior", f"C k(x, x) beyond {STIFF_BOX:g}: nearly a hard margin, where sweeps crawl", _auto_stiff_kernel),
    Rule("cd", "kernel: one Gram matrix, cheap sweeps", lambda form: isinstance(form.features, KernelFeatures)),
    Rule("interior", "free bias: an equality constraint", lambda form: form.bias == "free"),
    Rule("cd", "explicit rows with many columns: matrices of that size cost too much", lambda form: True),
)


RELIEF = (Newton(), CoordinateDescent(), Interior(), APG(), LinearProgram())
"""Engines that go on, in this order, where the one that was chosen ends without the gap asked for."""
FOLLOWERS = {"cd": Interior(), "decomposition": NewtonCG()}
"""Engine that goes on where another asks for it, also one that the user named: sweeps can crawl or go round in circles,
and working sets can be too small.
"""


def choose_solver(form: MarginForm, alone: bool = True) -> Rule:
    """Return the first rule of ``solver="auto"`` that fits, unless the form names its engine."""
    engine = problems_of(form)[0].engine if isinstance(form, Problem | Several) else ""
    if engine:
        return Rule(engine, "the engine that this kind of problem names", lambda form: True)
    return next(rule for rule in RULES if (alone or not rule.alone) and rule.fits(form))
