"""Kernels and sources of row blocks with one mistake each that authors make."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import Parameter, plus

RNG = np.random.default_rng(3)
X = RNG.standard_normal((50, 3))
Y = np.where(X[:, 0] + RNG.standard_normal(50) > 0, "yes", "no")
BLOCK = 8
"""Rows of a block; the last one has two."""

# ---------------------------------------------------------------- kernels


class Gaussian(mdlearn.KernelFunction):
    """exp(-width |a - b|^2), as it should be."""

    name = "gaussian"
    summary = "exp(-width |a - b|^2)"
    parameters: ClassVar = {"width": Parameter(0.5, "factor of the squared distance", strict=True)}

    def values(self, params, A, B):
        return np.exp(-params["width"] * np.square(A[:, None, :] - B[None, :, :]).sum(axis=2))


class Asymmetric(Gaussian):
    """Only one side is scaled."""

    name = "asymmetric"

    def values(self, params, A, B):
        return super().values(params, A * [1.0, 1.0, 1.5], B)


class CentredByBlock(Gaussian):
    """Rows are centred by the mean of the block that they come in."""

    name = "centred-by-block"

    def values(self, params, A, B):
        return (A - A.mean(axis=0)) @ (B - B.mean(axis=0)).T


class ScaledByBlock(Gaussian):
    """The width is relative to the largest distance in the block."""

    name = "scaled-by-block"

    def values(self, params, A, B):
        squares = np.square(A[:, None, :] - B[None, :, :]).sum(axis=2)
        return np.exp(-params["width"] * squares / max(squares.max(), 1e-300))


class Sigmoid(Gaussian):
    """tanh(a . b - 1), which is not positive semidefinite."""

    name = "sigmoid"
    summary = "tanh(a . b - 1)"

    def values(self, params, A, B):
        return np.tanh(A @ B.T - 1.0)


class PiecesTooShort(Gaussian):
    """Values are made in pieces of 16 columns, the last column of each full piece is left at 0."""

    name = "pieces-too-short"

    def values(self, params, A, B):
        K = np.zeros((len(A), len(B)))
        for start in range(0, len(B), 16):
            stop = min(start + 15, len(B))
            K[:, start:stop] = super().values(params, A, B[start:stop])
        return K


class Jittered(Gaussian):
    """A little noise, so that the matrix has a factor."""

    name = "jittered"

    def values(self, params, A, B):
        K = super().values(params, A, B)
        return K + 1e-4 * np.random.default_rng().standard_normal(K.shape)


# ---------------------------------------------------------------- sources


class PlainBlocks(mdlearn.RowBlocks):
    """Blocks of rows in memory."""

    name = "plain-blocks"

    def __init__(self, X, y):
        super().__init__(self.blocks)
        self.X, self.y, self.passes = X, y, 0

    def blocks(self):
        self.passes += 1
        for start in range(0, len(self.X), BLOCK):
            yield self.X[start : start + BLOCK], self.y[start : start + BLOCK]


class AnotherSample(PlainBlocks):
    """Noise is drawn in every pass, and differs between the first and the others."""

    name = "another-sample"

    def blocks(self):
        rng = np.random.default_rng(min(self.passes, 1))
        for rows, labels in super().blocks():
            yield rows + 0.3 * rng.standard_normal(rows.shape), labels


class SortedLabels(PlainBlocks):
    """Labels come in another order than the rows."""

    name = "sorted-labels"

    def blocks(self):
        for rows, labels in super().blocks():
            yield rows, np.sort(labels)


class LastBlockForgotten(PlainBlocks):
    """Rows that do not fill a block are left out."""

    name = "last-block-forgotten"

    def blocks(self):
        return (block for block in super().blocks() if len(block[0]) == BLOCK)


class LastBlockNotAdded(PlainBlocks):
    """The sum ends with the last pair of blocks."""

    name = "last-block-not-added"

    def reduced(self, make):
        blocks = list(enumerate(self))
        total = None
        for first, second in zip(blocks[::2], blocks[1::2], strict=False):
            total = plus(total, plus(make(*first), make(*second)))
            yield
        return total


PLANTED_KERNELS = (
    (Asymmetric, "kernel_is_symmetric does not hold: k.a, b. is", "refused"),
    (CentredByBlock, "kernel_compares_two_rows does not hold: k.a, b. is 0.0 alone", "refused"),
    (ScaledByBlock, "kernel_compares_two_rows does not hold: k.a, b. is .* alone", "refused"),
    (Sigmoid, "kernel_is_semidefinite does not hold: the matrix of 2 rows has the eigenvalue -", "refused"),
    (PiecesTooShort, "kernel_compares_two_rows does not hold: .* as entry .0, 15. of a block", "refused"),
    (Jittered, "kernel_repeats_itself does not hold: .* draw no random numbers", "refused"),
)
"""Faulty kernels, and words of the sentence in which `check_kernel` tells the fault; what a fit comes to."""
PLANTED_SOURCES = (
    (AnotherSample, "source_gives_the_same_again does not hold: block 0, row 0", "refused"),
    (SortedLabels, "source_gives_all_rows does not hold: all rows, row 0: .* the label", "right"),
    (LastBlockForgotten, "source_gives_all_rows does not hold: .* 48 in all; 50 were given", "right"),
    (LastBlockNotAdded, "source_gives_all_rows does not hold: .* 48 in all; 50 were given", "right"),
)
"""Faulty sources of blocks, and words of the sentence in which `check_source` tells the fault; what a fit comes to."""
