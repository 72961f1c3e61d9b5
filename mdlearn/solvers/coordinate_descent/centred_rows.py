"""Coordinate descent on CSR rows, never densifying: a centred two-variable update, the bias kept out of the rows.

A constant column would give the dual Hessian one eigenvalue of the size of m, which single coordinates fight. So the
bias stands still during a sweep and moves between sweeps, by a response that is learned from how Y answered the last
move. Variance multipliers never meet a bound; an update is skipped when its exact price is a small part of the gap.

After the first sweeps, those over rows that still move are extrapolated
(`mdlearn.solvers.coordinate_descent.subspace_acceleration`), which places the bias too. During such a sweep the bias
follows Y by a small share: updates hardly shrink, and Y cannot run away. Full sweeps in between have the bias in every
update, so that what they report holds for b = Y. Neither lowers the dual value. A free bias goes on by its learned
response.

With a strong variance term nearly all is a matter of s, and the dual is close to one quadratic: while hinge multipliers
stand still, every sweep is extrapolated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator

import numpy as np
from scipy.linalg import solve_triangular

import mdlearn._solvers.centred as kernels
from mdlearn.data.features.clustered_rows import BlockRows
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.features.smoothed_clusters import SmoothedClusterRows
from mdlearn.data.rows.csr_rows import CsrRows, CsrRowsWithoutColumn
from mdlearn.data.rows.rows import Rows, steps
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.certificates.primal import primal
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.base import Report, Reports
from mdlearn.solvers.common.warm_start import warm_start_multipliers
from mdlearn.solvers.coordinate_descent.subspace_acceleration import SubspaceExtrapolation

FIRST_SWEEPS_PER_REPORT, SWEEPS_PER_REPORT = 5, 4
ENTRIES_PER_CALL = 1 << 20
"""Entries of X that one call of the kernel visits: about 20 ms."""
RECORDS = 1 << 16
"""Rows whose records are written at once."""
LAZY = 0.05
"""Share of the average gap per row below which an update of a variance multiplier is not worth its cost, at most."""
FAST = 0.15
"""Fall of the gap in one round up to which that share may grow. What skipped updates are worth is of second order in
their errors, but these move the margins of free rows, which count in the first: where the gap falls slower, the share
shrinks."""
BIAS_STALL_SWEEPS = 10
"""Full sweeps without a smaller gap after which the bias joins every update."""
AGAIN = 30
"""Full sweeps after which sums are computed anew from the multipliers, against drift."""
FEW_FREE_ROWS = 3000
"""Free multipliers up to which second-order steps are cheap beside more sweeps."""
STALL_SWEEPS_FEW_FREE, STALL_SWEEPS_MANY_FREE = 4, 300
"""Full sweeps without a halved gap after which sweeps end, with few free multipliers and with many."""
STIFF_VARIANCE = 0.02
"""kappa |x|^2 from which variance multipliers can set the pace."""
QUIET = 0.01
"""Share of rows whose hinge multiplier may be free or move in a sweep that is extrapolated."""
EXTRAPOLATION_HOLD = 0.02
"""How firmly extrapolated sweeps hold Y: weight of half its squared change, in units of the mean |x|^2. Without it Y
runs away, with much more sweeps are slow."""
FEWEST_NEIGHBOURS, MOST_NEIGHBOURS, NEIGHBOUR_SHARE = 4, 16, 0.15
"""Neighbouring rows that an extrapolated sweep visits one after the other, since memory likes it: at least, at most,
and in between so few that their mean inner products add up to this share of |x|^2. Longer runs would cost sweeps, and
without extrapolation even short ones do."""
LEAST_RESPONSE = 0.05
"""Least response of a free bias, in units of the first guess: nothing else holds it where no multiplier is free."""


class SparseRowAccess(ABC):
    """Access of compiled sweeps to sparse rows, and the vector that they keep up to date: here, w itself.

    `entries`: numbers that one visit of every row touches.
    """

    entries: int

    @abstractmethod
    def sweep(self, problem: kernels.Centred, order: np.ndarray) -> None:
        """Visit the coordinates in `order` once."""

    def sweep_vector(self, w: np.ndarray) -> np.ndarray:
        """The vector that sweeps keep, for coefficients w."""
        return w

    def coefficients(self, vector: np.ndarray) -> np.ndarray:
        """Coefficients for that vector."""
        return vector


class CsrRowAccess(SparseRowAccess):
    """Access of sweeps to rows of a CSR matrix."""

    def __init__(self, rows: CsrRows) -> None:
        self.X = rows.X
        self.blank = rows.place if isinstance(rows, CsrRowsWithoutColumn) else -1
        self.entries = int(self.X.nnz)

    def sweep(self, problem: kernels.Centred, order: np.ndarray) -> None:
        problem.blank = self.blank
        kernels.sweep(self.X.data, self.X.indices, self.X.indptr, problem, order)


class BlockRowAccess(SparseRowAccess):
    """Access of sweeps to rows of dense blocks."""

    def __init__(self, rows: BlockRows) -> None:
        layout = rows.layout
        self.F, self.couplings = rows.F, np.zeros((0, 0))
        self.place, self.blocks = (np.ascontiguousarray(of, dtype=np.int64) for of in (layout.place, layout.blocks))
        self.entries = rows.F.size

    def sweep(self, problem: kernels.Centred, order: np.ndarray) -> None:
        kernels.sweep_blocks(self.F, self.place, self.blocks, self.couplings, problem, order)


class TiedRowAccess(BlockRowAccess):
    """Access of sweeps to rows of tied blocks. A w is kept: margins are products with one block, updates with all."""

    def __init__(self, rows: SmoothedClusterRows) -> None:
        super().__init__(rows)
        self.couplings, self.mix = rows.couplings, rows.mix
        self.entries *= rows.layout.n_blocks

    def sweep_vector(self, w: np.ndarray) -> np.ndarray:
        product: np.ndarray = (self.mix @ w.reshape(self.mix.shape[0], -1)).ravel()
        return product

    def coefficients(self, vector: np.ndarray) -> np.ndarray:
        w: np.ndarray = solve_triangular(self.mix, vector.reshape(self.mix.shape[0], -1))
        return w.ravel()


def sparse_row_access(rows: Rows) -> SparseRowAccess:
    """Access of sweeps to rows that are not written out densely."""
    if isinstance(rows, SmoothedClusterRows):
        return TiedRowAccess(rows)
    if isinstance(rows, BlockRows):
        return BlockRowAccess(rows)
    assert isinstance(rows, CsrRows)
    return CsrRowAccess(rows)


class CentredDual:
    """State of coordinate descent on a column over centred sparse rows, or over rows of blocks."""

    def __init__(self, form: MarginForm, column: Column) -> None:
        assert isinstance(form.features, LinearFeatures)
        self.form, self.column, self.rows = form, column, form.features.rows
        self.visits = sparse_row_access(self.rows)
        m, d = self.rows.shape
        self.beta, self.s, self.u = np.zeros(column.caps.shape), np.zeros(m), np.zeros(d)
        self.keep = np.zeros(column.caps.shape, dtype=np.uint8)
        self.squares = self.rows.squares()
        self.v, self.shift = np.zeros(d), np.zeros(m)
        if column.kappa > 0 or column.mean > 0:
            self.v = self.rows.adjoint(column.counts * column.y) / column.total
            self.shift = column.y * self.rows.dot(self.v)
        used = column.counts > 0
        records, norm = self._records(used), float(self.v @ self.v)
        self.problem = kernels.Centred(
            records, norm, column.label_mean, column.kappa, self.beta, self.s, self.u, self.keep
        )
        self.visited = 0  # rows, by all sweeps together
        self.movable = np.flatnonzero(np.tile(used, column.caps.shape[0]))
        square = float(self.squares.mean())
        self.bias = CentredRowsBias(form.bias, self.problem, column, square, self.free)
        self.stiff = column.kappa * square > STIFF_VARIANCE
        # A free bias is an equality that single coordinates break; the variance's multipliers can mend it.
        steady = form.bias != "free"
        self.ahead = SubspaceExtrapolation(form, column, self.rows, self.v) if self.stiff or steady else None
        common = self.ahead.common / square if self.ahead is not None and self.stiff else 1.0
        self.together = int(np.clip(NEIGHBOUR_SHARE / max(common, 1e-300), FEWEST_NEIGHBOURS, MOST_NEIGHBOURS))
        self.firm, self.hold = (0.0, 0.0) if form.bias == "none" else (1.0, min(1.0, EXTRAPOLATION_HOLD * square))
        self.quiet = self.joined = self.settled = self.renew = False
        self.steady = steady
        self.problem.tau = column.mean
        self.problem.total = column.mean * column.label_mean

    def _records(self, used: np.ndarray) -> np.ndarray:
        """Records of all coordinates for the compiled loop, each in one line of the cache: shape (T, m, 8)."""
        column = self.column
        shape = (*column.caps.shape, 8)
        room = np.empty(int(np.prod(shape)) + 7)
        first = -room.ctypes.data // room.itemsize % 8
        records = room[first : first + int(np.prod(shape))].reshape(shape)
        scale = column.kappa if column.kappa > 0 else 1.0
        inverse = np.divide(1.0, scale * column.counts, out=np.ones(used.shape[0]), where=used)
        sides, kinks = column.sides[:, None], column.kinks
        parts = (column.y, self.squares, self.shift, inverse, column.caps, column.softness, sides, kinks)
        for rows in steps(used.shape[0], RECORDS):  # in pieces, between which Ctrl-C is seen
            for place, part in enumerate(parts):
                records[:, rows, place] = part[..., rows] if part.shape[-1] > 1 else part
        return records

    def sweep(self, coordinates: np.ndarray, rng: np.random.Generator) -> Generator[None, None, None]:
        """Visit coordinates in random order, then extrapolate or move the bias."""
        p, ahead, whole = self.problem, self.ahead, coordinates is self.movable
        if self.settled and not self.quiet:
            if whole:
                self._set_bias(p.total * self.firm, self.firm)
            else:
                self._set_bias(self.intercept(), self.hold)
        p.loss = p.spread = p.gap = 0.0
        order = self._order(coordinates, rng)
        self.visited += order.shape[0]
        before = self.beta.copy() if self.stiff else self.beta
        step = max(64, int(ENTRIES_PER_CALL * order.shape[0] / max(1, self.visits.entries)))
        for k in range(0, order.shape[0], step):
            self.visits.sweep(p, order[k : k + step])
            yield
        if self.stiff:
            moved = int(((self.beta != before) | self._inside()).any(axis=0).sum())
            self.quiet = moved <= QUIET * self.s.shape[0]
        if ahead is not None and (self.quiet or (self.settled and not whole)):
            self._extrapolate(ahead)
        elif not self.settled:
            if ahead is not None and self.stiff:
                ahead.forget()
                self._set_bias(self.intercept(), 0.0)
            self.bias.move()

    def _order(self, coordinates: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Random order; of short runs of neighbours where sweeps are extrapolated."""
        if not self.quiet:
            return rng.permutation(coordinates)
        n, run = coordinates.shape[0], self.together
        whole = n // run
        runs = coordinates[: whole * run].reshape(whole, run)
        return np.append(runs[rng.permutation(whole)].ravel(), coordinates[whole * run :])

    def _extrapolate(self, ahead: SubspaceExtrapolation) -> None:
        p = self.problem
        self.centre()
        e, beta = ahead.advance(self.coef(), p.total, self.s, self.beta)
        w, p.total, self.s[:] = ahead.parts(e)
        self.beta[:], self.u[:], p.tau = beta, self.visits.sweep_vector(w), 0.0
        p.along = float(self.v @ w)
        self._set_bias(ahead.offset(e), self.hold)
        self.bias.step = 0.0  # no secant over a move that is not its own
        if self.renew:
            ahead.answer(self._inside(), self.squares)
            self.renew = False

    def _set_bias(self, intercept: float, hold: float) -> None:
        """Take margins at a bias that begins there and follows Y by the share `hold`, unless it is Y itself."""
        p = self.problem
        if not self.joined:
            p.live, p.offset = hold, intercept - hold * p.total

    def centre(self) -> None:
        """Give s the sum 0: leaves w where it is and raises the dual value."""
        self.s -= self.column.counts * (float(self.s.sum()) / self.column.total)

    def restart(self) -> None:
        """Remove drift: recompute u and the sums from the multipliers; centre s, which leaves w where it is."""
        column, p = self.column, self.problem
        self.centre()
        q = column.y * (column.sides @ self.beta + self.s)
        w = self.rows.adjoint(q)
        self.u[:] = self.visits.sweep_vector(w)
        p.tau = column.mean - float(self.s.sum())
        p.along = float(self.v @ w)
        p.total = float(q.sum()) + p.tau * column.label_mean

    def coef(self) -> np.ndarray:
        """The weight vector, to be read only."""
        w, tau = self.visits.coefficients(self.u), self.problem.tau
        return w if tau == 0.0 else w + tau * self.v

    def intercept(self) -> float:
        """The bias that margins are taken with."""
        return self.problem.offset + self.problem.live * self.problem.total

    def begin(self) -> bool:
        """Take the column's start, if it is better than zeros; say whether it was."""
        found = warm_start_multipliers(self.form, self.column)
        if found is None:
            return False
        assert self.column.start is not None
        self.beta[:], self.s[:], gap = found
        self.restart()
        self.problem.offset = self.column.start.intercept
        self.problem.lazy = LAZY * gap / self.s.shape[0]
        return True

    def report(self) -> Report:
        """Values that the sweep summed on its way: margins of different moments, close to the truth and free."""
        column, p = self.column, self.problem
        w, intercept = self.coef(), self.intercept()
        objective = 0.5 * float(w @ w) + p.loss + p.spread
        mean = p.along + p.tau * float(self.v @ self.v) + intercept * column.label_mean
        objective += 0.5 * self.bias.weight * intercept**2 - column.mean * mean
        point = Point(self.beta.copy(), self.s.copy(), None, intercept)
        if self.form.bias == "free" and not self.quiet:
            # No bound without sum alpha = 0, and what its repair costs no sweep can tell: both values exactly.
            lower = feasible_dual(self.form, column, self.beta, self.s)[0]
            return Report.estimated(primal(self.form, column, w, intercept)[0], lower, point)
        gap = p.gap + 0.5 * self.bias.weight * (p.total - intercept) ** 2
        return Report.estimated(objective, objective - gap, point)

    def run(self, rng: np.random.Generator) -> Reports:
        """Full sweeps with a report each; after the first few, cheap sweeps over what still moves in between.

        Ends when many sweeps have not halved the gap.
        """
        best, halved, lazy, p = np.inf, np.inf, LAZY, self.problem
        stalled, since, sweeps, patience = 0, 0, 0, STALL_SWEEPS_MANY_FREE
        if self.begin():
            sweeps = FIRST_SWEEPS_PER_REPORT - 1  # the first sweep tells already which rows still move
        while since < patience:
            yield from self.sweep(self.movable, rng)
            sweeps += 1
            self.centre()
            report = self.report()
            gap = report.objective - report.lower_bound
            yield report
            stalled = 0 if gap < 0.99 * best else stalled + 1
            lazy = 0.25 * lazy if gap > FAST * best else min(LAZY, 2.0 * lazy)
            best = min(best, gap)
            since = 0 if best < 0.5 * halved else since + 1
            halved = best if since == 0 else halved
            stuck = self.ahead.stuck if self.ahead is not None and self.quiet else stalled >= BIAS_STALL_SWEEPS
            if stuck and self.bias.weight > 0:
                self.joined, p.live, p.offset = True, 1.0, 0.0
            p.lazy = lazy * best / self.s.shape[0]
            if sweeps % AGAIN == 0:
                self.restart()
            if sweeps >= FIRST_SWEEPS_PER_REPORT:
                self.settled, self.renew = self.steady, self.steady and not self.quiet
                patience = STALL_SWEEPS_FEW_FREE if self.free() <= FEW_FREE_ROWS else STALL_SWEEPS_MANY_FREE
                active = np.flatnonzero(self.keep.ravel())
                if self.quiet and 2 * active.shape[0] > self.movable.shape[0]:
                    patience = max(patience, STALL_SWEEPS_FEW_FREE * (1 + SWEEPS_PER_REPORT))
                    continue  # full sweeps do as well
                for _ in range(SWEEPS_PER_REPORT):
                    yield from self.sweep(active, rng)

    def free(self) -> int:
        """Number of multipliers inside their box."""
        return int(self._inside().sum())

    def _inside(self) -> np.ndarray:
        inside: np.ndarray = (self.beta > 0) & (self.beta < self.column.caps)
        return inside


class CentredRowsBias:
    """Bias that moves between sweeps over centred rows: Newton on Y(b) = weight b with a learned slope -dY/db.

    The weight of b^2 is 1 for a regularized bias and 0 for a free one.
    """

    def __init__(
        self, kind: str, problem: kernels.Centred, column: Column, square: float, n_free: Callable[[], int]
    ) -> None:
        self.problem, self.column, self.square, self.n_free = problem, column, max(square, 1e-300), n_free
        self.moves_at_all = kind != "none"
        self.weight = 1.0 if kind == "regularized" else 0.0
        self.response = self.least = self.last = self.step = 0.0
        self.moves = 0

    def move(self) -> None:
        """Answer the sweep that just ended."""
        p = self.problem
        if not self.moves_at_all or p.live:
            return
        rho = p.total - self.weight * p.offset
        if self.moves == 0:
            self.response = self._first_response()
            self.least = 0.0 if self.weight else LEAST_RESPONSE * self.response
        elif self.step != 0.0:
            secant = -(rho - self.last) / self.step - self.weight
            if rho * self.last < 0 and abs(rho) > 0.5 * abs(self.last):
                self.response *= 3.0
            elif secant > 0:
                self.response = float(np.clip(secant, 0.25 * self.response, 2.0 * self.response))
            else:
                self.response *= 0.5
            self.response = max(self.response, self.least)
        self.step = rho / (self.weight + self.response)
        p.offset += self.step
        self.last = rho
        self.moves += 1

    def _first_response(self) -> float:
        """Every free multiplier, and every variance multiplier, answers a move of the bias by about 1 / |x|^2."""
        m, stiff = self.column.y.shape[0], self.column.kappa * self.square
        free = max(self.n_free(), 0.01 * m)  # none may be free yet
        return (free + (m - free) * stiff / (1.0 + stiff)) / self.square
