"""What the property tests share: how many examples, data of every awkward kind, parameters over their whole ranges.

The examples are the same in every run. ``MDLEARN_EXAMPLES=50`` in the environment takes fifty times as many, drawn
anew each time (``--hypothesis-seed=N`` repeats one).
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import mdlearn

TIMES = int(os.environ.get("MDLEARN_EXAMPLES", "1"))


def examples(n):
    """Settings of a property with n examples in the suite."""
    return settings(
        max_examples=n * TIMES,
        derandomize=TIMES == 1,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        print_blob=TIMES > 1,
        suppress_health_check=list(HealthCheck),
    )


# ---------------------------------------------------------------- data

TRAITS = ("integers", "duplicates", "constant column", "zero rows", "zero column", "separable", "far away", "columns")
WEIGHTS = ("none", "counts", "fractions", "wide")


@dataclass(frozen=True)
class Sample:
    """Rows, labels 0 ... k - 1 and weights (None: one each), with the words that made them."""

    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    weight: np.ndarray | None = field(repr=False)
    told: str

    @property
    def counts(self):
        return np.ones(len(self.y)) if self.weight is None else np.asarray(self.weight, dtype=float)


@st.composite
def samples(draw, classes=(2, 2), weights=WEIGHTS, scales=(1e-3, 1.0, 1.0, 1.0, 1e3), kinds=("float64",)):
    """Two to forty rows of one to eight columns; every class has a row that counts."""
    k = draw(st.integers(*classes))
    m, d, seed = draw(st.integers(max(2, k), 40)), draw(st.integers(1, 8)), draw(st.integers(0, 2**16))
    traits = draw(st.frozensets(st.sampled_from(TRAITS), max_size=3))
    scale, weighted, kind = draw(st.sampled_from(scales)), draw(st.sampled_from(weights)), draw(st.sampled_from(kinds))
    return sample_of(m, d, k, seed, traits, scale, weighted, kind)


def sample_of(m, d, k, seed, traits=(), scale=1.0, weighted="none", kind="float64"):
    """The sample of these words."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    if "integers" in traits:
        X = np.round(2.0 * X)
    if "duplicates" in traits:
        X = X[rng.integers(0, max(1, m // 3), m)]
    if "zero rows" in traits:
        X[rng.random(m) < 0.3] = 0.0
    noise = 0.0 if "separable" in traits else 1.0
    y = np.argmax(X @ rng.standard_normal((d, k)) + noise * rng.standard_normal((m, k)), axis=1)
    y[:k] = np.arange(k)
    if "columns" in traits:
        X = X * 10.0 ** rng.integers(-4, 5, d)
    if "far away" in traits:
        X = X + 30.0
    if "constant column" in traits:
        X[:, -1] = 1.0
    if "zero column" in traits:
        X[:, 0] = 0.0
    weight = {
        "none": None,
        "counts": rng.integers(0, 4, m),
        "fractions": np.where(rng.random(m) < 0.2, 0.0, rng.exponential(1.0, m)),
        "wide": 10.0 ** rng.integers(-6, 7, m),
    }[weighted]
    if weight is not None:
        weight[:k] = np.maximum(weight[:k], 1)
    told = f"m={m} d={d} k={k} seed={seed} scale={scale:g} weights={weighted} {kind} {sorted(traits)}"
    return Sample((scale * X).astype(kind), y, weight, told)


# ---------------------------------------------------------------- parameters

# 0 beside numbers from very small to very large.
NUMBER = st.sampled_from([0.0, 1e-6, 0.01, 0.5, 1.0, 1.0, 4.0, 100.0, 1e5])
POSITIVE = NUMBER.filter(bool)
SHARP = st.sampled_from([0.1, 1.0, 5.0, 50.0])
PARAMETERS = {
    "ldm": {"C": NUMBER, "lambda1": NUMBER, "lambda2": NUMBER},
    "odm": {"lam": NUMBER, "mu": NUMBER, "theta": st.sampled_from([0.0, 0.2, 0.9, 1.0 - 2.0**-53])},
    "svm": {"C": NUMBER},
    "lssvm": {"C": NUMBER},
    "lsldm": {"C": NUMBER, "lambda1": NUMBER, "lambda2": NUMBER},
    "lsvm": {"nu": POSITIVE},
    "uldm": {"C": POSITIVE, "lambda0": NUMBER, "basis": st.just("euclidean")},
    "mdlm": {"alpha": SHARP, "lambda1": NUMBER, "lambda2": NUMBER, "beta": NUMBER, "ridge": NUMBER},
    "l2lr": {"lam": NUMBER},
    "mlr": {"alpha": SHARP, "lam": NUMBER},
    "mmlr": {"alpha": SHARP, "lam": NUMBER},
    "ww": {"C": NUMBER},
    "rlp": {},
}
HARD = st.sampled_from([np.inf, *[1.0] * 5])
BIASES = st.sampled_from(["none", "regularized", "free"])


@st.composite
def problems(draw, objectives, **given):
    """(objective, arguments of fit): parameters, bias, and C = inf now and then."""
    name = draw(st.sampled_from(list(objectives)))
    chosen = {key: draw(values) for key, values in PARAMETERS[name].items()}
    if name in ("ldm", "svm") and np.isinf(draw(HARD)):
        chosen["C"] = np.inf
    return name, {**chosen, "bias": draw(BIASES), **{key: draw(value) for key, value in given.items()}}


KERNELS = st.sampled_from(
    [
        {"kernel": "rbf", "gamma": 0.5},
        {"kernel": "rbf", "gamma": "scale"},
        {"kernel": "rbf", "gamma": 1e3},
        {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
        {"kernel": "poly", "gamma": 1.0, "degree": 3},
        {"kernel": "linear"},
    ]
)

# ---------------------------------------------------------------- fits

REFUSALS = ("not separable", "unbounded", "no optimum", "cannot take this problem", "without end", "no smallest value")


def attempt(objective, sample, **given):
    """A model, or None where fit says in one sentence that there is no such model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        try:
            return mdlearn.fit(objective, sample.X, sample.y, sample_weight=sample.weight, **given)
        except ValueError as error:
            assert any(word in str(error) for word in REFUSALS), error
            return None
