"""Decompositions that the quadratic problems of a path share: of the rows per column, or one of a kernel matrix."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.certificates.primal import primal
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.orthogonal import STIFF_STACK
from mdlearn.solvers.dual_hessian.eigen import eigendecompose_gram
from mdlearn.solvers.quadratic.kernel_spectrum import KernelBasisSpectrum, KernelSpectrum
from mdlearn.solvers.quadratic.spectrum import Spectrum, largest_spectrum_steepness, spectrum_of, suits_spectrum
from mdlearn.solvers.systems.scatter import Scatters
from mdlearn.solvers.systems.system_choice import Shared

DECOMPOSED_ROWS = 3000
"""Rows of a Gram matrix, or columns, beyond which a decomposition takes too long."""


@dataclass(frozen=True, eq=False)
class Decompositions:
    """Decompositions that a path of quadratics hands on, extended by what the next form needs; never written to."""

    shared: Shared = None  # what `Direct.prepare` returned: the Gram matrix, or what columns of rows have in common
    # decompositions of rows, with the column that each was made for and the weight that it serves up to
    rows: tuple[tuple[Column, float, Spectrum], ...] = ()
    # of the Gram matrix, or of a kernel matrix that is the rows
    kernel: KernelSpectrum | KernelBasisSpectrum | None = None
    fails: bool = False  # whether that matrix has none

    def extended(self, form: MarginForm, shared: Shared) -> Generator[None, None, Decompositions]:
        """Decompose what the columns of a form need and is not there yet."""
        found, gram = replace(self, shared=shared), shared if isinstance(shared, np.ndarray) else None
        if gram is None and form.features.width > DECOMPOSED_ROWS:
            return found
        found = yield from found._of_kernel(form, gram)
        if gram is not None:
            return found
        if found.kernel is not None and all(found.kernel.serves(form, column) for column in form.columns):
            return found
        for column in form.columns:
            if suits_spectrum(form, column) and found._spectrum(column) is None:
                others = tuple(one for one in found.rows if not _share_decomposition(one[0], column))
                spectrum = yield from spectrum_of(form, [column], shared if isinstance(shared, Scatters) else None)
                # By squares up to some weight, beyond it by the rows themselves.
                stiff = largest_spectrum_steepness(column) * float(spectrum.values.sum()) > STIFF_STACK
                most = np.inf if stiff else STIFF_STACK / max(float(spectrum.values.sum()), 1e-300)
                found = replace(found, rows=(*others, (column, most, spectrum)))
        return found

    def _of_kernel(self, form: MarginForm, gram: np.ndarray | None) -> Generator[None, None, Decompositions]:
        """Decompose the Gram matrix; without one, rows that are a kernel matrix as such."""
        counts = form.columns[0].counts
        known = self.kernel is not None and np.array_equal(self.kernel.known.counts, counts)
        if known or self.fails or form.ridge == 0:
            return self
        kind: type[KernelSpectrum | KernelBasisSpectrum] = KernelSpectrum
        constant, G = float(form.bias == "regularized"), gram
        if gram is None:
            assert isinstance(form.features, LinearFeatures)
            kind, constant = KernelBasisSpectrum, 0.0
            G = None if form.bias == "free" or form.kinds else form.features.square(counts)
        elif form.offsets or gram.shape[0] > DECOMPOSED_ROWS:
            return self
        if G is None:
            return self
        decomposed = yield from eigendecompose_gram(G, constant, counts)
        return replace(self, fails=True) if decomposed is None else replace(self, kernel=kind(decomposed))

    def report(self, form: MarginForm, column: Column) -> Report | None:
        """The answer to one problem, with its value and bound; None where there is no decomposition for it."""
        known: KernelSpectrum | KernelBasisSpectrum | Spectrum | None = None
        if self.kernel is not None and self.kernel.serves(form, column):
            known = self.kernel
        elif not isinstance(self.shared, np.ndarray) and suits_spectrum(form, column):
            known = self._spectrum(column)
        if known is None:
            return None
        point = known.point(form, column)
        assert point.coef is not None
        value = primal(form, column, point.coef, point.intercept)[0]
        return Report.estimated(value, feasible_dual(form, column, point.beta, point.sigma).lower, point)

    def _spectrum(self, column: Column) -> Spectrum | None:
        for other, most, spectrum in self.rows:
            if _share_decomposition(other, column) and largest_spectrum_steepness(column) <= most:
                return spectrum
        return None


def _share_decomposition(a: Column, b: Column) -> bool:
    """Whether two columns have the same signs and counts, so that one decomposition serves both."""
    return np.array_equal(a.y, b.y) and np.array_equal(a.counts, b.counts)
