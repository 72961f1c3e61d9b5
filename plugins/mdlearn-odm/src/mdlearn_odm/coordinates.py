"""Rows in which the squared norm is that of the coefficients, and linear systems over them.

scipy is imported where it is used: finding this plugin costs nothing then.
"""

import numpy as np

from mdlearn.extend import DenseRows, LinearFeatures

MATRIX = 2500
"""Unknowns up to which a linear system is factored; beyond, it is solved by conjugate gradients."""
NARROW = 2000
"""Columns up to which those are preconditioned by a factor of the moments; beyond, by the diagonal."""
FEW = 3000
"""Rows up to which a Gram matrix takes the place of more columns than rows."""
JITTER = 1e-14
"""What is added to the diagonal of a Gram matrix, in units of its largest entry, so that it has a factor."""
FORCING, PRODUCTS = 1e-3, 300
"""Relative residual at which conjugate gradients end, and most of their steps."""
BLOCK = 1 << 18
"""Entries of a block of rows."""
TRACE = 1e-9
"""Ridge of free intercepts in linear systems, in units of the largest diagonal entry."""


class Coordinates:
    """Rows and their constant feature: F = rows V[:d] + V[d], |f|^2 = sum ridge V^2.

    Attributes
    ----------
    rows : Rows of shape (m, d)
    ridge : ndarray of shape (p,)
        Ones, with 0 for free intercepts; p = d, or d + 1 with intercepts.
    """

    def __init__(self, form, rows, factor=None):
        self.features, self.bias, self.rows, self.factor = form.features, form.bias != "none", rows, factor
        last = [float(form.bias == "regularized")] if self.bias else []
        self.ridge = np.append(np.ones(rows.shape[1]), last)
        self.counts, self.moments = form.losses.counts, None

    @classmethod
    def made(cls, form):
        """Explicit rows as they are, or the rows of a Cholesky factor of the Gram matrix; a generator."""
        features = form.features
        if by_rows(features):
            yield
            found = cls(form, features.rows)
        else:
            G = yield from features.gram()
            factor = _cholesky(G, features)
            yield
            found = cls(form, DenseRows(factor), factor)
        if form.k * found.ridge.shape[0] > MATRIX and found.ridge.shape[0] <= NARROW:
            yield from found._measure()
        return found

    def times(self, V):
        """Decision values of coefficients (p, k)."""
        d = self.rows.shape[1]
        return self.rows.dot(V[:d]) + V[d] if self.bias else self.rows.dot(V)

    def adjoint(self, A):
        """Its transpose: (m, k) to (p, k)."""
        G = self.rows.adjoint(A)
        return np.vstack([G, A.sum(axis=0)]) if self.bias else G

    def held(self, V):
        """Coefficients of the features, and intercepts."""
        from scipy.linalg import solve_triangular

        d = self.rows.shape[1]
        W, b = V[:d], V[d] if self.bias else np.zeros(V.shape[1])
        if self.ridge[-1] == 0.0:
            b = b - b.mean()  # a common shift changes nothing
        if self.factor is not None:
            W = solve_triangular(self.factor, W, lower=True, trans=1, check_finite=False)
            W = np.column_stack([self.features.expand(w) for w in W.T])
        return np.ascontiguousarray(W), b

    def blocks(self, chosen):
        """Numbers of some rows and the rows themselves with the constant feature, block by block."""
        step = max(1, BLOCK // self.ridge.shape[0])
        for start in range(0, chosen.shape[0], step):
            index = chosen[start : start + step]
            B = self.rows.block(index)
            yield index, np.hstack([B, np.ones((B.shape[0], 1))]) if self.bias else B

    def _measure(self):
        """Compute the moments sum_i c_i x_i x_i'."""
        p = self.ridge.shape[0]
        self.moments = np.zeros((p, p))
        for index, B in self.blocks(np.arange(self.rows.shape[0])):
            self.moments += (B * self.counts[index, None]).T @ B
            yield


def by_rows(features):
    """Whether rows are taken as they are, and not those of a factor of their Gram matrix."""
    return isinstance(features, LinearFeatures) and (features.width <= features.n_rows or features.n_rows > FEW)


def _cholesky(G, features):
    """Lower factor of G and a trace of the identity; ValueError when G is not positive semidefinite."""
    size = float(np.diagonal(G).max(initial=0.0)) or 1.0
    for grow in (1.0, 1e2, 1e4, 1e6):
        try:
            return np.linalg.cholesky(G + grow * JITTER * size * np.eye(G.shape[0]))
        except np.linalg.LinAlgError:
            continue
    whose = "all rows" if isinstance(features, LinearFeatures) else features.kernel.title
    raise ValueError(f"the matrix of {whose} is not positive semidefinite; give a positive semidefinite kernel")


class System:
    """The second derivative ridge + X'HX, H a (k, k) matrix per row.

    Parameters
    ----------
    space : Coordinates
    live : ndarray of intp
        Rows with H other than 0.
    apply : callable
        (live rows' values (n, k)) -> H times them.
    k : int
    """

    def __init__(self, space, live, apply, k):
        self.space, self.live, self.apply, self.k = space, live, apply, k
        self.p = space.ridge.shape[0]

    def solve(self, G):
        """Return the solution for a right-hand side (p, k); a generator."""
        if self.k * self.p <= MATRIX:
            return (yield from self._direct(G))
        return (yield from self._iterated(G))

    def _column(self, j):
        """H e_j of every live row."""
        unit = np.zeros((self.live.shape[0], self.k))
        unit[:, j] = 1.0
        return self.apply(unit)

    def _direct(self, G):
        from scipy.linalg import cho_factor, cho_solve

        p, k = self.p, self.k
        K = np.zeros((k, p, k, p))
        for i in range(k):
            H = self._column(i)
            for j in range(i + 1):
                used = np.flatnonzero(H[:, j])
                block = np.zeros((p, p))
                for index, B in self._pieces(used):
                    block += (B * H[index, j, None]).T @ B
                K[i, :, j] += block
            yield
        K = K.reshape(k * p, k * p)
        diagonal = np.diagonal(K).reshape(k, p)
        K[np.diag_indices(k * p)] += (self._ridge(diagonal)).ravel()
        solution = cho_solve(cho_factor(K, lower=True, overwrite_a=True, check_finite=False), G.T.ravel())
        yield
        return solution.reshape(k, p).T

    def _pieces(self, used):
        """Blocks of rows, numbered among the live ones."""
        start = 0
        for index, B in self.space.blocks(self.live[used]):
            yield used[start : start + index.shape[0]], B
            start += index.shape[0]

    def _ridge(self, diagonal):
        """The ridge of every column; free intercepts get a trace of what they bend by: a common shift bends nothing."""
        ridge = np.tile(self.space.ridge, (self.k, 1))
        return ridge + np.where(ridge == 0, TRACE * max(float(diagonal.max()), 1e-300), 0.0)

    def _iterated(self, G):
        """Conjugate gradients, preconditioned class by class."""
        from scipy.linalg import cho_factor, cho_solve

        space, shares = self.space, np.zeros(self.k)
        diagonals, solves = np.zeros((self.k, self.p)), []
        weights = np.zeros(space.counts.shape[0])
        for j in range(self.k):
            weights[self.live] = self._column(j)[:, j]
            squares = space.rows.column_squares(weights)
            diagonals[j] = np.append(squares, weights.sum()) if space.bias else squares
            shares[j] = weights.sum() / space.counts.sum()
            yield
        ridge = self._ridge(diagonals)
        for j in range(self.k):
            if space.moments is None:
                solves.append(lambda r, by=diagonals[j] + ridge[j]: r / by)
            else:
                A = shares[j] * space.moments
                A[np.diag_indices(self.p)] += ridge[j]
                factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
                solves.append(lambda r, by=factor: cho_solve(by, r, check_finite=False))
            yield
        return (yield from self._conjugate(G, ridge.T, solves))

    def _conjugate(self, G, ridge, solves):
        X, R = np.zeros_like(G), G.copy()
        goal, P, rho = FORCING * float(np.linalg.norm(G)), None, 1.0
        for _ in range(PRODUCTS):
            if float(np.linalg.norm(R)) <= goal:
                break
            Z = np.column_stack([solve(r) for solve, r in zip(solves, R.T)])
            rho, old = float((R * Z).sum()), rho
            P = Z if P is None else Z + (rho / old) * P
            F = np.zeros((self.space.counts.shape[0], self.k))
            F[self.live] = self.apply(self.space.times(P)[self.live])
            H = self.space.adjoint(F) + ridge * P
            yield
            step = rho / float((P * H).sum())
            X, R = X + step * P, R - step * H
        return X
