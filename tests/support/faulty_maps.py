"""A small feature map for tests; objectives whose maps have one fault each, and the words that tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap, MappedFeatures, array_of
from mdlearn.objectives.svm import SVM
from mdlearn.testing.checks import check_features


@dataclass(frozen=True, eq=False)
class Squares(FeatureMap):
    """(x / scale, x^2 / scale)."""

    scale: np.ndarray

    @property
    def columns(self):
        return self.scale.shape[0]

    @property
    def width(self):
        return 2 * self.columns

    def features(self, A):
        if A.sparse:
            from scipy.sparse import csr_matrix, hstack

            S = A.matrix().multiply(1.0 / self.scale)
            return hstack([S, csr_matrix(A.matrix().power(2)).multiply(1.0 / self.scale)])
        X = A.block(slice(None))
        return np.hstack([X / self.scale, X**2 / self.scale])

    def attributes(self):
        return {"scale_": self.scale}

    def encoded(self):
        return {"scale": self.scale}

    @classmethod
    def decoded(cls, values):
        return cls(array_of(values, "scale", None))


class Curved(SVM):
    """The SVM on these features."""

    name = "curved"
    kernels = False
    multiclass = ("ovr",)
    feature_map: ClassVar = Squares

    def features(self, data, kernel, params, rng):
        place = self.feature_map(1.0 + np.arange(data.X.shape[1]))
        return MappedFeatures((yield from place.rows(data.X)), map=place)


class NoName(Curved):
    """Features without a class that reads them back."""

    feature_map: ClassVar = None

    def features(self, data, kernel, params, rng):
        place = Squares(np.ones(data.X.shape[1]))
        return MappedFeatures((yield from place.rows(data.X)), map=place)


class NoFeatures(Curved):
    """A class, but no features of it."""

    def features(self, data, kernel, params, rng):
        return (yield from SVM.features(self, data, kernel, params, rng))


class LooksAround(Squares):
    def features(self, A):
        F = super().features(A)
        return F - F.mean(axis=0)


class ForgetsScale(Squares):
    def encoded(self):
        return {"scale": np.ones(self.columns)}


class OtherColumns(Squares):
    @property
    def columns(self):
        return self.scale.shape[0] + 1

    @property
    def width(self):
        return 2 * self.scale.shape[0]


class OtherScores(Squares):
    def scores(self, A, coef):
        return 2.0 * super().scores(A, coef)


def with_map(cls):
    return type(cls.__name__, (Curved,), {"feature_map": cls})


MAP_FAULTS = (
    (check_features, NoName, "feature_map is None, but features.. makes Squares"),
    (check_features, NoFeatures, "feature_map is Squares, but features.. makes none"),
    (check_features, with_map(LooksAround), "of one row and of many rows differ"),
    (check_features, with_map(ForgetsScale), "encoded.. needs to hold all"),
    (check_features, with_map(OtherColumns), "OtherColumns with columns = 4 and width = 6, 3 and 6 are needed"),
    (check_features, with_map(OtherScores), "the features and decision_function differ"),
)
