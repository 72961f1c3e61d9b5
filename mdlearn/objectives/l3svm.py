"""L3SVM (Zantedeschi, Emonet & Sebban 2017): a linear machine per cluster over shared landmarks."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.clustering.distances import mean_nearest_distance
from mdlearn.data.features.feature_map import FeatureMap, MappedFeatures
from mdlearn.data.features.kernel_features import Features, KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.landmark_map import LandmarkMap
from mdlearn.data.features.landmarks import (
    PROJECTIONS,
    SELECTIONS,
    choose,
    given_landmarks,
    in_time,
    landmark_projection,
)
from mdlearn.data.features.smoothed_clusters import cluster_smoothing
from mdlearn.data.rows.distinct import Distinct, distinct
from mdlearn.data.validation import Data, check_number
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.problem import Form
from mdlearn.forms.proof import Solution
from mdlearn.objectives.base import Objective, Parameter, Setting, Terms, one_of

SUPPORT_SHARE = 1e-4
"""Share of the largest dual coefficient, per unit of weight, from which a row is a support vector.

Interior points leave traces on the others."""

POINT_CHOICES = (("centers", "n_clusters", "clustering", 0), ("landmarks", "n_landmarks", "landmark_selection", 1))
"""Points that are given or chosen: how many, how, and with which seed."""

Settings = dict[str, Any]


def _l3svm_landmark_count(name: str, value: Any) -> Any:
    """Check of L3SVM's `n_clusters` and `n_landmarks`: a number, or None."""
    return None if value is None else check_number(value, name, low=1, integer=True)


def _l3svm_landmark_points(name: str, value: Any) -> Any:
    """Check of L3SVM's `centers` and `landmarks`: an array of points, or None."""
    return None if value is None else given_landmarks(value, name, None)


def _l3svm_choice(*names: str) -> Callable[[str, Any], Any]:
    """Check of an L3SVM setting that is one of some names, or a callable."""
    named = one_of(*names, other=", or a callable")
    return lambda name, value: value if callable(value) else named(name, value)


def _l3svm_projection_width(name: str, value: Any) -> Any:
    """Check of L3SVM's `sigma`, the width of the projection on landmarks: a number > 0, or None."""
    top = float(np.finfo(float).max)
    return None if value is None else float(check_number(value, name, low=0.0, high=top, strict=True))


class L3SVM(Objective):
    """Local linear machines in a landmark space, eq. (1) of the L3-SVM paper.

    ``1/2 |theta|^2 + (C/m) sum max(0, 1 - z)``, f(x) = theta_k . mu(x) + b for x in cluster k

    mu(x) are the projections of x on landmarks, the same for all clusters; b is shared. With `kernel` other than
    "linear", theta_k . mu(x) becomes a function in that kernel's space over mu(x) ("gamma" of "scale" is that of X).

    Parameters
    ----------
    C : float, default 100
        Weight of the mean loss (c in the paper), >= 0.
    n_clusters : int, default 10, or the number of distinct rows where these are fewer
        Number K of clusters, at most the number of distinct rows; with `centers`, as many as these are.
    n_landmarks : int, default min(d, number of distinct rows)
        Number L of landmarks, at most the number of distinct rows (for "pca" also at most d); with `landmarks`, as many
        as these are.
    centers : array-like of shape (K, d), optional
        Centres of the clusters; a row belongs to the nearest. Default: found by `clustering`.
    landmarks : array-like of shape (L, d), optional
        Default: found by `landmark_selection`.
    clustering : {"kmeans"} or callable, default "kmeans"
        Weighted k-means, or f(X, K, seed) -> centres of shape (K, d), where X are the distinct rows in lexicographic
        order.
    landmark_selection : {"random", "pca", "kmeans"} or callable, default "random"
        Distinct rows at random, leading principal directions (neither centred nor scaled), centres of k-means, or
        f(X, L, seed) -> landmarks of shape (L, d).
    projection : {"dot", "rbf"} or callable, default "dot"
        mu(x, l) = x . l or exp(-|x - l|^2 / sigma), or f(A, B) -> array of shape (n, L).
    sigma : float, default d
        Width of "rbf", > 0, in squared units of X.
    loss : {"hinge", "squared_hinge"}, default "hinge"
        The paper's loss, or that of the authors' code.
    smoothness : float, default 0
        rho >= 0 in the term rho/2 sum_{k<l} s_kl |theta_k - theta_l|^2 with s_kl = exp(-|c_k - c_l|^2 / sigma_c);
        sigma_c is the mean squared distance between two centres.
    membership : {"hard", "soft"}, default "hard"
        "soft": x belongs to its 4 nearest clusters, with weights exp(-|x - c_k|^2 / width) over their sum; the width
        is the mean squared distance of rows to the nearest centre.
    n_levels : int, default 1
        Fits one after the other: landmarks of the next are the distinct support vectors of the last.
    n_restarts : int, default 1
        Runs of k-means, of which the best counts.

    Notes
    -----
    bias="regularized" is section 3.1 of the paper (and what its stability theorem and liblinear need), "free" is
    section 2.1. Levels are fitted greedily; learning all of them at once is not convex and not done here.
    """

    name: ClassVar[str] = "l3svm"
    summary: ClassVar[str] = "local linear SVMs over landmarks, one per cluster"
    formula: ClassVar[str] = "1/2 |theta|^2 + C/m sum max(0, 1 - z), f(x) = theta_k(x) . mu(x) + b"
    multiclass: ClassVar[tuple[str, ...]] = ("ovr",)
    needs_rows: ClassVar[bool] = True
    feature_map: ClassVar[type[FeatureMap] | None] = LandmarkMap
    feature_parameters: ClassVar[tuple[str, ...] | None] = (
        "n_clusters",
        "n_landmarks",
        "centers",
        "landmarks",
        "clustering",
        "landmark_selection",
        "projection",
        "sigma",
        "smoothness",
        "membership",
        "n_restarts",
    )
    parameters: ClassVar[dict[str, Parameter | Setting]] = {
        "C": Parameter(100.0, "weight of the mean loss, c in the paper"),
        "n_clusters": Setting(None, "number of clusters, by default 10 or all distinct rows", _l3svm_landmark_count),
        "n_landmarks": Setting(None, "number of landmarks, by default min(d, distinct rows)", _l3svm_landmark_count),
        "centers": Setting(None, "array of centres", _l3svm_landmark_points),
        "landmarks": Setting(None, "array of landmarks", _l3svm_landmark_points),
        "clustering": Setting("kmeans", "kmeans, or a callable f(X, K, seed)", _l3svm_choice("kmeans")),
        "landmark_selection": Setting(
            "random", f"{', '.join(SELECTIONS)}, or a callable f(X, L, seed)", _l3svm_choice(*SELECTIONS)
        ),
        "projection": Setting("dot", f"{', '.join(PROJECTIONS)}, or a callable f(A, B)", _l3svm_choice(*PROJECTIONS)),
        "sigma": Setting(None, "squared width of the rbf projection, d by default", _l3svm_projection_width),
        "loss": Setting("hinge", "hinge or squared_hinge", one_of("hinge", "squared_hinge")),
        "smoothness": Parameter(0.0, "rho, which pulls coefficients of close clusters together"),
        "membership": Setting("hard", "hard or soft", one_of("hard", "soft")),
        "n_levels": Parameter(1, "fits, each on the support vectors of the last as landmarks", low=1, integer=True),
        "n_restarts": Parameter(1, "runs of k-means", low=1, integer=True),
    }

    def complete(self, params: Settings, data: Data) -> Settings:
        """Numbers of clusters and landmarks, and sigma; ValueError where they do not fit the rows or given points."""
        d, filled = data.X.shape[1], dict(params)
        filled["sigma"] = float(d) if params["sigma"] is None else params["sigma"]
        for points, number, _, _ in POINT_CHOICES:
            if params[points] is not None:
                filled[number] = _number_of_given_points(number, self.given.get(number), points, params[points], d)
        if filled["n_clusters"] is None:
            filled["n_clusters"] = _default_l3svm_cluster_count(data)
        if filled["n_landmarks"] is None:
            filled["n_landmarks"] = min(d, len(distinct(data.X, data.counts)))
        return filled

    def features(
        self, data: Data, kernel: Kernel, params: Settings, rng: np.random.Generator
    ) -> Generator[None, Any, Features]:
        """Find centres and landmarks, then project."""
        place = yield from self.place(data, params, rng)
        return (yield from _l3svm_features(place, data, kernel))

    def place(self, data: Data, params: Settings, rng: np.random.Generator) -> Generator[None, Any, LandmarkMap]:
        """Find centres and landmarks, in interruptible pieces; of `data`, labels do not matter."""
        # Two seeds, drawn whatever is given: landmarks do not depend on how centres are found.
        seeds = rng.integers(2**31, size=2)
        found = {"centers": params["centers"], "landmarks": params["landmarks"]}
        late = yield
        rows = _l3svm_landmark_candidates(data, params, bool(late)) if any(p is None for p in found.values()) else None
        for points, number, how, seed in POINT_CHOICES:
            if rows is not None and found[points] is None:
                work = choose(params[how], rows, params[number], int(seeds[seed]), number, params["n_restarts"])
                found[points] = yield from in_time(work)
        centers, landmarks = found["centers"], found["landmarks"]
        width = mean_nearest_distance(data.X, data.counts, centers) if params["membership"] == "soft" else None
        mix = cluster_smoothing(centers, params["smoothness"])[0] if params["smoothness"] > 0 else None
        projection = landmark_projection(params["projection"], params["sigma"], data.X, data.counts)
        return LandmarkMap(centers, landmarks, projection, width, mix).turned()

    def needs_all_rows(self, params: Settings) -> str:
        """Support vectors are not known over row blocks."""
        levels = "the landmarks of later levels are support vectors; give n_levels=1"
        return levels if params["n_levels"] > 1 else ""

    def terms(self, params: Settings, total: float) -> Terms:
        """C / m times the hinge or its square."""
        return Terms(loss=(HingeTerm(params["C"] / total, power=2 if params["loss"] == "squared_hinge" else 1),))

    def problem(
        self,
        data: Data,
        features: Features,
        kernel: Kernel,
        bias: str,
        params: Settings,
        solve: Callable[[Form], list[Solution]],
    ) -> Generator[None, Any, Form]:
        """Make the form of the last level, from the support vectors of those before."""
        form = self.form(data, features, bias, params)
        for level in range(1, params["n_levels"]):
            used = _l3svm_support_vectors(solve(form), data.counts)
            if not used.any():
                if (yield):  # the time is up
                    return form
                raise ValueError(f"level {level} has no support vectors to be landmarks; lower n_levels or raise C")
            points = distinct(data.X.take(used), data.counts[used]).block(slice(None))
            place = replace(form.features.mapping(), landmarks=points, axes=None).turned()
            form = self.form(data, (yield from _l3svm_features(place, data, kernel)), bias, params)
        return form


def _default_l3svm_cluster_count(data: Data) -> int:
    """Default of L3SVM's `n_clusters`: all distinct rows, 10 if more; the first rows mostly suffice."""
    most, n = 10, 80
    head = len(distinct(data.X.take(slice(0, n)), data.counts[:n])) if data.X.shape[0] > n else 0
    return most if head >= most else min(most, len(distinct(data.X, data.counts)))


def _l3svm_landmark_candidates(data: Data, params: Settings, late: bool) -> Distinct:
    """Distinct rows to choose L3SVM's landmarks from; those of the first rows if time is up and they are enough."""
    n = 8 * max(params["n_clusters"], params["n_landmarks"])
    if late and data.X.shape[0] > n:
        head = distinct(data.X.take(slice(0, n)), data.counts[:n])
        if len(head) >= n // 8:
            return head
    return distinct(data.X, data.counts)


def _number_of_given_points(number: str, given: Any, points: str, array: np.ndarray, d: int) -> int:
    """Number of L3SVM's given centres or landmarks; ValueError where `number` or the columns contradict it."""
    given_landmarks(array, points, d)
    if given is not None and given != array.shape[0]:
        raise ValueError(f"{number} is {given} but {points} has {array.shape[0]} rows; give one of the two")
    return int(array.shape[0])


def _l3svm_features(place: LandmarkMap, data: Data, kernel: Kernel) -> Generator[None, Any, Features]:
    """Landmark features of L3SVM: explicit for a linear kernel, else the kernel on the landmark space."""
    if kernel.name != "linear":
        return KernelFeatures(data.X, place.straight.over(kernel))
    return MappedFeatures((yield from place.rows(data.X)), map=place)


def _l3svm_support_vectors(solutions: list[Solution], counts: np.ndarray) -> np.ndarray:
    """Mask of the rows that are support vectors of any class: landmarks of L3SVM's next level."""
    each = np.array([np.abs(s.alpha) / counts for s in solutions if s.alpha is not None])
    return (each > SUPPORT_SHARE * each.max(axis=1, keepdims=True)).any(axis=0)
