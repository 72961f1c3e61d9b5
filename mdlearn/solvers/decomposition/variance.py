"""Rounds of a decomposition beside a variance term, whose part of the dual Hessian is made of a partial factor.

With S = C - (C y)(C y)' / m, the coefficients of multipliers u and the pull p of the mean are u + p - kappa S f, and
their decision values f = H (u + p) with the dual Hessian H = (I + kappa G S)^-1 G. For a factor L of some columns with
L L' <= G, what the variance takes from G is known in part::

    H <= G - L L' + (I + kappa L L' S)^-1 L L' = G - B B',     B B' = L (I - (I + kappa L'S L)^-1) L'

A free bias is a kernel of constants without end, which the variance holds: with s = kappa L'S 1, t = kappa 1'S 1 and
A = I + kappa L'S L the bound becomes G - B B' + c c', c = (1 - L A^-1 s) / (t - s'A^-1 s)^(1/2), decision values
contain the bias, and coefficients sum to 0.

Where the cache has room for the values between all rows, these are made once: blocks are gathered from them, and
products in single precision read them.

Blocks of that bound tell steps how far to go. Decision values follow from products of G with the multipliers alone,
whose columns are few, and a product with all of G that was made for other coefficients r of variance and mean::

    f = v + L L' (p - kappa S f - r) = v + L (I + kappa L'S L)^-1 (L'(p - r) - kappa L'S v),     v = G u + G r

Only what changes of variance and mean goes by the factor. What this leaves, f - G (u + p - kappa S f), is found by the
next product with all of G, which takes its place, or taken away by conjugate gradients that the factor preconditions.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mdlearn._solvers.bounded_quadratic import gather
from mdlearn._solvers.products import write_symmetric
from mdlearn.data.rows.rows import steps
from mdlearn.forms.certificates.primal import primal_objective
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen
from mdlearn.solvers.decomposition.rounds import DecompositionKernel, DecompositionRounds

ROWS_PER_TILE = 256
"""Rows of a working set's block from which the factor's part is taken at once: products of them stay in the cache."""
ROWS_PER_OUTER = 2048
"""Rows of the factor whose outer products are added between two heartbeats."""
COLUMNS_AT_ONCE, COLUMNS_PER_BEAT = 64, 512
"""Columns of a whole matrix whose products are added up in its precision, copies of which stay in the cache, and those
between two heartbeats."""
FIRST_SET_ROWS, EAGER_SHARE, SET_SHARE = 300, 0.25, 0.866
"""Where the values between all rows are kept: rows of a first working set, as 150 and 500 took longer in most of 30
fits of six real sets, up to 1.3 times; share of all rows up to which sets grow because most of their rows moved; and
share that a set has at most, whose Hessian and Newton steps then take no more memory than what values leave of that of
a set of all rows."""
SHRUNK_SET_SHARE, ROOM_PER_FREE = 0.4, 2.0
"""Share of the last set that rows asked for have to fall below for the next one to be smaller, and rows to free ones of
one that has to be larger: a Hessian of another size is made anew."""
MOST_VARIANCE_STEPS = 30
"""Steps of conjugate gradients on decision values, each a product with the kernel."""
SOLVED_RESIDUAL = 1e-2
"""Share of the square of a residual that conjugate gradients leave."""
SHRUNK_RESIDUAL = 0.25
"""Share of the last residual's square above which the factor is not trusted to say alone what is lacking."""
SINGLE_PRODUCT_GAP, FALLEN_TRULY, IDLE_PRODUCTS, IDLE_KEPT_PRODUCTS = 1e-5, 0.7, 3, 8
"""Gap down to which products in single precision tell it, and how many of them in a row that do not close it to the
share of the least so far say that they cannot: more where values are kept, and a product costs a twentieth of an exact
one. With 3, 5,000 rows of a9a at C = 10 took 1.3 times as long."""
FALLEN_DOUBT, DUE_PRODUCT_GAP = 0.05, 1e-3
"""Share of what the last product changed in the gap that the next one is expected to, and a gap at which multipliers
have settled so far that a product is worth its price: one at 0.1 was followed by another in most fits."""


class VarianceRounds(DecompositionRounds):
    """Rounds over multipliers of the loss alone: those of variance and mean follow from `f`, with the bias."""

    def __init__(self, form: MarginForm, column: Column, kernel: DecompositionKernel, rng: np.random.Generator) -> None:
        super().__init__(form, column, kernel, rng)
        assert kernel.factor is not None
        self.factor, self.residual = kernel.factor, np.inf
        self.least_gap, self.idle, self.doubt = np.inf, 0, np.inf  # doubt: what the last product changed in the gap
        self.grown = False  # whether rounds stood still before
        # G u, the product with coefficients r of variance and mean, and L'(p - r).
        self.loss_values, self.rest_values = np.zeros((2, self.f.shape[0]))
        self.towards_rest = np.zeros(self.factor.shape[1])
        self.single, self.trusted = True, True  # whether single precision tells the gap, and the factor what is lacking
        self.exact: np.ndarray | None = None  # decision values of the present coefficients, where a product made them
        self.squares = np.einsum(
            "ij,ij->i", self.factor, self.factor
        )  # nearly k(x, x) where the factor tells nearly all
        self.root = np.sqrt(column.counts)
        self.along = self.root * column.y / np.sqrt(column.total)
        self.free_bias = form.bias == "free"
        self.values = self.room  # kernel values between all rows, where these are kept
        if self.whole:
            m = self.f.shape[0]
            self.most = min(m, max(FIRST_SET_ROWS, int(SET_SHARE * m)))
            self.size = self.least = min(m, FIRST_SET_ROWS)
            self.eager = max(self.least, int(EAGER_SHARE * m))
        self.ones = self._down(np.ones_like(self.f))  # R'1

    def prepare(self) -> Generator[None, None, None]:
        """Make what the factor says of the variance."""
        column, L = self.column, self.factor
        r, weights = L.shape[1], np.sqrt(column.kappa * column.counts)
        W = np.zeros((r, r))
        for start in range(0, L.shape[0], ROWS_PER_OUTER):
            rows = slice(start, start + ROWS_PER_OUTER)
            part = L[rows] * weights[rows, None]  # times its own transpose: half of a product
            W += part.T @ part
            yield
        mean = L.T @ (column.counts * column.y)
        W -= np.multiply.outer((column.kappa / column.total) * mean, mean)
        values, Q = symmetric_eigen(W)
        yield
        values = np.maximum(values, 0.0)
        # A polynomial kernel has few independent columns: what the factor leaves of it is less than single precision.
        self.B = np.empty((L.shape[0], r + self.free_bias), dtype=self.columns.dtype)
        self.place = np.full(L.shape[0], -1, dtype=np.intp)  # of rows in B; -1: nobody asked for them
        self.taken_signs = np.ones(r + self.free_bias, dtype=self.columns.dtype)
        self.turned = Q * np.sqrt(values / (1.0 + values))
        self.inverse = (Q / (1.0 + values)) @ Q.T
        if self.free_bias:
            s = column.kappa * (L.T @ self._up(self.ones))
            q = self.inverse @ s
            held = column.kappa * float(self.ones @ self.ones) - float(s @ q)
            one = 1.0 - L @ q
            self.taken_by_bias, self.taken_signs[r] = one / np.sqrt(held), -1.0
            self.lift = one / held  # decision values of a coefficient that is lacking in the sum
            self.towards_ones = self._preconditioned(self.ones)
        if self.whole:
            m = L.shape[0]
            self.values = yield from self.columns.block(np.arange(m), np.empty(m * m, dtype=self.columns.dtype))

    def taken(self, rows: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Rows of B, what the variance takes from the Hessian: made once, for those of working sets alone."""
        new, r = rows[self.place[rows] < 0], self.turned.shape[0]
        first = int(np.count_nonzero(self.place >= 0))  # in the order of use: other memory stays untouched
        dtype = np.dtype(np.float64) if self.grown else self.B.dtype  # the product's precision
        turned = self.turned.astype(dtype, copy=False)
        for part in steps(new.shape[0], ROWS_PER_OUTER):
            own = slice(first + part.start, first + part.stop)
            self.B[own, :r] = self.factor[new[part]].astype(dtype, copy=False) @ turned
            if self.free_bias:
                self.B[own, r] = self.taken_by_bias[new[part]]
            yield
        self.place[new] = np.arange(first, first + new.shape[0])
        return self.B[self.place[rows]]

    def spread(self, f: np.ndarray) -> np.ndarray:
        """kappa S f."""
        column = self.column
        return -column.y * column.spread(column.y * f)

    def coefficients(self) -> np.ndarray:
        """Dual coefficients of the multipliers, of the loss and of variance and mean."""
        return self.u + self.pull - self.spread(self.f)

    def variance_multipliers(self) -> np.ndarray:
        """Multipliers of the variance at the present decision values."""
        return self.column.spread(self.column.y * self.f)

    def set_multipliers(self, u: np.ndarray) -> Generator[None, None, None]:
        """Go on from multipliers u, with the decision values that the factor makes of variance and mean."""
        self.u, self.loss_values = u, np.zeros_like(u)
        self._take_rest(np.zeros_like(u), np.zeros_like(u))
        # Of all rows, a value serves both of its places.
        rows = np.arange(u.shape[0]) if 2 * np.count_nonzero(u) > u.shape[0] else np.flatnonzero(u)
        yield from self.add(rows, u[rows])
        self.evaluate()

    def values_over(self, whole: DecompositionRounds, inside: np.ndarray) -> Generator[None, None, np.ndarray]:
        assert isinstance(whole, VarianceRounds)
        f = yield from super().values_over(whole, inside)
        rest = self.coefficients() - self.u
        return np.asarray(f + whole.factor @ (whole.factor[inside].T @ rest) - self.constant * float(rest.sum()))

    def settle(self, u: np.ndarray, predicted: np.ndarray) -> Generator[None, None, None]:
        """Go on from multipliers u that were made for a gradient, moved near their kinks until they have that gradient.

        Without the condition of a free bias, small errors of many multipliers at their caps move all decision values.
        """
        n = min(self.size, u.shape[0])
        rows = np.sort(np.argpartition(np.abs(predicted), n - 1)[:n])
        reach = float(np.abs(predicted[rows]).max())
        share = 0.5 + 0.5 * (self.signs * predicted)[rows] / max(reach, 1e-300)
        u[rows] = np.clip(share * (self.low + self.high)[rows], self.low[rows], self.high[rows])
        yield from super().settle(u, predicted)
        rows, bound = yield from self.hessian(rows)
        H = bound.astype(np.float64)
        # Where the factor tells nearly all, what is left of H is rounding of single precision, that of `B`.
        rounding = float(np.finfo(self.B.dtype).eps) * n * float(self.squares[rows].max())
        H[np.diag_indices(n)] += float(np.diagonal(H).max()) + rounding
        lack = (self.e - predicted)[rows]
        yield
        move = cho_solve(cho_factor(H.T, lower=True, overwrite_a=True, check_finite=False), lack, check_finite=False)
        move = np.clip(u[rows] + move, self.low[rows], self.high[rows]) - u[rows]
        self.u[rows] += move
        yield from self.add(rows, move)
        self.evaluate()

    def add(self, rows: np.ndarray, change: np.ndarray) -> Generator[None, None, None]:
        yield from self._add_columns(self.loss_values, rows, change)
        self.loss_values += self.constant * float(change.sum())
        self._respond()

    def _respond(self) -> None:
        """Find the decision values at which variance and mean answer to the multipliers, as the factor tells it."""
        # In double precision: values that cancel are kappa m times what they leave.
        f, L = self.loss_values + self.rest_values, self.factor
        f += L @ (self.inverse @ (self.towards_rest - L.T @ self.spread(f)))
        if self.free_bias:
            f += float((self.u + self.pull - self.spread(f)).sum()) * self.lift
        self.f, self.exact = f, None

    def _take_rest(self, rest: np.ndarray, values: np.ndarray) -> None:
        """Take coefficients of variance and mean whose decision values are known; a bias among these is found anew."""
        self.rest_values, self.towards_rest = values, self.factor.T @ (self.pull - rest)

    def set_rows(self, free: int) -> int:
        """Rows of the next working set, over kept values as many as the last one had where these will do."""
        wanted, last = super().set_rows(free), self.within.shape[0]
        if not self.whole or wanted < SHRUNK_SET_SHARE * last:
            return wanted
        return last if wanted <= last else int(np.clip(ROOM_PER_FREE * free, wanted, self.most))

    def block(self, rows: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Bound on the Hessian between the rows of a working set."""
        H = self._room(rows.shape[0]) if self.whole else (yield from super().block(rows))
        part, tiles = (yield from self.taken(rows)), list(steps(rows.shape[0], ROWS_PER_TILE))
        for k, own in enumerate(tiles):
            for others in tiles[: k + 1]:
                # Not a view of the same rows: what NumPy mirrors then takes longer than the product.
                taken = part[own] @ (part[others] * self.taken_signs).T
                known = self._gathered(rows[own], rows[others]) if self.whole else H[own, others]
                write_symmetric(np.subtract(known, taken, out=taken), H, own.start, others.start)
            yield
        return H

    def _gathered(self, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Kept values between some rows and others, with the constant."""
        n, values = rows.shape[0], np.empty((rows.shape[0], others.shape[0]), dtype=self.values.dtype)
        gather(self.values, rows.astype(np.int64), others.astype(np.int64), values, 0, n)
        if self.constant:
            values += self.constant
        return values

    def strip(self, rows: np.ndarray, others: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Bound on the Hessian between some rows and others."""
        H = self._gathered(rows, others) if self.whole else (yield from super().strip(rows, others))
        taken = yield from self.taken(others)
        H -= (yield from self.taken(rows)) @ (taken * self.taken_signs).T
        yield
        return H

    def intercept(self, product: np.ndarray) -> float:
        """Bias beside decision values that lack it; a free one makes the coefficients sum to 0."""
        if not self.free_bias:
            return super().intercept(product)
        excess = float((self.u + self.pull - self.spread(product)).sum())
        return excess / (self.column.kappa * float(self.ones @ self.ones))

    def evaluate(self) -> None:
        if self.free_bias:
            self.f += self.intercept(self.f)
        coefficients = self.coefficients()
        self.b = self.constant * float(coefficients.sum())
        self._measure(coefficients, self.f)

    def _measure(self, coefficients: np.ndarray, f: np.ndarray) -> None:
        """Find objective and bound of dual coefficients with their decision values f."""
        column, beta = self.column, self.beta()
        self.e = self.target - self.f - self.soft * self.u
        squares = max(float(coefficients @ f), 0.0)
        sigma = column.y * coefficients - (column.sides @ beta + column.pull)
        self.objective = min(primal_objective(column, column.y * f, squares)[0], self.objective_at_zero)
        self.lower_bound = column.bound(beta, sigma) - 0.5 * squares

    def refine(self, coefficients: np.ndarray, exact: np.ndarray) -> None:
        """Take note of exact decision values of the present coefficients: they are what the next steps begin from."""
        self.b = self.intercept(exact) if self.free_bias else self.constant * float(coefficients.sum())
        self.exact, estimate = exact + self.b, self.gap
        free = (self.u > self.low) & (self.u < self.high)
        missed = float((self.high - self.low)[free] @ np.abs(self.exact - self.f)[free])
        self._take_rest(coefficients - self.u, self.exact - self.loss_values)
        self._measure(coefficients, self.exact)
        # Of rows far from their kinks, as of many at a large gap, changes cancel.
        self.doubt = max(abs(self.gap - estimate), missed / max(abs(self.objective), 1e-300))

    def measure(self, tol: float) -> Generator[None, None, bool]:
        """Find the gap by a product in single precision, unless that is sure to be in vain; whether it is known."""
        expected = FALLEN_DOUBT * self.doubt
        # Over kept values a product costs far less than a report in vain.
        if self.exact is not None or (not self.whole and self.gap + expected <= tol):
            return True
        due = self.gap <= max(tol, min(expected, DUE_PRODUCT_GAP))
        if not (self.single and due):
            return due
        coefficients = self.coefficients()
        self.refine(coefficients, (yield from self._product(coefficients)))
        self.idle = 0 if self.gap <= FALLEN_TRULY * self.least_gap else self.idle + 1
        self.least_gap = min(self.least_gap, self.gap)
        most = IDLE_KEPT_PRODUCTS if self.whole else IDLE_PRODUCTS
        self.single = self.gap > SINGLE_PRODUCT_GAP and self.idle < most
        return True

    def grow(self) -> Generator[None, None, bool]:
        """Leave single precision where it can be left: its rounding may be why rounds stand still."""
        if self.grown:
            return (yield from super().grow())
        self.grown, self.single = True, False
        self.within = np.empty(0, dtype=np.intp)  # its Hessian is made anew
        self.place[:] = -1
        return True

    def correct(self) -> Generator[None, None, bool]:
        """Bring decision values and coefficients together, after a product has told how far they are apart.

        What they lack is t in (I + kappa R'G R) t = R'G (u + p), where S = R R' and t = R'f. The factor says it nearly;
        where it does not, conjugate gradients that it preconditions do, by products in single precision.
        """
        if self.exact is None:
            return False
        r, exact, z = self._preconditioned_with_bias(self._down(self.exact - self.f), self.exact)
        size = float(r @ z)
        self.trusted = self.trusted and size <= SHRUNK_RESIDUAL * self.residual
        self.residual = size
        if self.trusted:
            self._respond()
            self.evaluate()
            return False
        self.exact = None
        yield from self._conjugate_gradients(exact, r, z)
        return True

    def _conjugate_gradients(self, exact: np.ndarray, r: np.ndarray, z: np.ndarray) -> Generator[None, None, None]:
        """Solve for what is lacking, the residual r and its preconditioned z known; measure the gap there."""
        kappa, q, t = self.column.kappa, self.u + self.pull, self._down(self.f)
        step, inner = z, float(r @ z)
        enough = SOLVED_RESIDUAL * inner
        for _ in range(MOST_VARIANCE_STEPS):
            towards = self._up(step)
            product = yield from self._product(towards)
            product += self.constant * float(towards.sum())
            moved = step + kappa * self._down(product)
            bend = float(step @ moved)
            if not (bend > 0.0 and inner > 0.0):  # nothing is lacking, or rounding of single precision
                break
            length = inner / bend
            t, r, exact = t + length * step, r - length * moved, exact - (kappa * length) * product
            last = inner
            r, exact, z = self._preconditioned_with_bias(r, exact)
            inner = float(r @ z)
            if inner <= enough:
                break
            step = z + (inner / last) * step
        self.f, coefficients = exact - r / self.root, q - kappa * self._up(t)
        self._take_rest(coefficients - self.u, exact - self.loss_values)
        self.doubt = 0.0
        self._measure(coefficients, exact)

    def _preconditioned_with_bias(self, r: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Residual, decision values, and the preconditioned residual, after a free bias took its share of them."""
        if self.free_bias:
            moved = float(self.towards_ones @ r) / float(self.towards_ones @ self.ones)
            r, exact = r - moved * self.ones, exact - moved
        return r, exact, self._preconditioned(r)

    def _preconditioned(self, r: np.ndarray) -> np.ndarray:
        """(I + kappa R'L L'R)^-1 r."""
        return r - self.column.kappa * self._down(self.factor @ (self.inverse @ (self.factor.T @ self._up(r))))

    def _product(self, coefficients: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Product of the kernel matrix, without the constant, in single precision."""
        out = np.zeros_like(coefficients)
        yield from self._add_columns(out, np.arange(out.shape[0]), coefficients)
        return out

    def _add_columns(self, out: np.ndarray, rows: np.ndarray, change: np.ndarray) -> Generator[None, None, None]:
        """Add products of changes with columns of the kernel matrix, without the constant."""
        if not self.whole:
            yield from self.columns.add(out, rows, change)
            return
        everything = rows.shape[0] == out.shape[0]
        change = change.astype(np.float64 if self.grown else self.values.dtype)
        for part in steps(rows.shape[0], COLUMNS_AT_ONCE):
            out += change[part] @ self.values[part if everything else rows[part]]
            if part.start % COLUMNS_PER_BEAT == 0:
                yield

    def _down(self, f: np.ndarray) -> np.ndarray:
        """R'f."""
        v = self.root * f
        return v - float(self.along @ v) * self.along

    def _up(self, t: np.ndarray) -> np.ndarray:
        """R t."""
        return self.root * (t - float(self.along @ t) * self.along)
