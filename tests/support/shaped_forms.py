"""Forms of declared sizes: one number stands for all entries, or for a row, so that large ones cost nothing to make."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from mdlearn.data.features.basis import BasisColumns, BasisFeatures
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.extend import Column, HingeTerm, LogisticTerm, MarginForm

LOSSES = {
    "none": (),
    "hinge": (HingeTerm(1e-3),),
    "squared hinge": (HingeTerm(1e-3, power=2),),
    "squared": (HingeTerm(1e-3, power=2), HingeTerm(1e-3, side=-1, power=2)),
    "logistic": (LogisticTerm(1e-3),),
    "logistics": (LogisticTerm(1e-3), LogisticTerm(1e-3, threshold=2.0)),
    "hinges": (HingeTerm(1e-3), HingeTerm(1e-3, side=-1, threshold=3.0)),
    "squared hinges": (HingeTerm(1e-3, power=2), HingeTerm(1e-3, side=-1, threshold=3.0, power=2)),
    "hard": (HingeTerm(np.inf),),
}


class Shaped(LinearFeatures):
    """Rows of a known length, which need not be read."""

    def squares(self):
        return np.broadcast_to(self.n_entries / self.n_rows, (self.n_rows,))


def dense(m, d):
    return Shaped(DenseRows(np.broadcast_to(1.0, (m, d))))


def stored(m, d, each):
    """CSR rows with so many entries each."""
    X = csr_matrix((m, d))
    X.data, X.indices = np.broadcast_to(1.0, (m * each,)), np.broadcast_to(np.int32(0), (m * each,))
    X.indptr = np.arange(0, m * each + 1, each)
    return Shaped(CsrRows(X))


def rbf(m, d=5):
    """Rows that differ: the choice goes by groups of equal ones."""
    rows = DenseRows(np.broadcast_to(np.arange(m)[:, None] * 1.0, (m, d)))
    return KernelFeatures(rows, Kernel("rbf", {"gamma": 0.5}))


def basis_of_rbf(m, d=5):
    """The same kernel's columns, those of all rows, as a basis."""
    features = rbf(m, d)
    return BasisFeatures(BasisColumns(features.rows, features.kernel, np.arange(m)), places=np.arange(m))


def form(features, loss, bias="none", variance=0.0, ridge=1.0, penalty=0.0, classes=1, joint=False):
    m = features.n_rows
    y = np.where(np.arange(m) % 2, 1.0, -1.0)
    column = Column(y, np.ones(m), variance, 0.0, LOSSES[loss] if isinstance(loss, str) else loss)
    return MarginForm(features, (column,) * classes, bias, ridge, penalty=penalty, joint=joint)
