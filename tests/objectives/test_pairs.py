"""More than two classes by pairs: votes and fuzzy memberships, against fits of each pair and the definitions."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mdlearn

K = 4
WAYS = ("ovo", "fuzzy-min", "fuzzy-avg")
TIGHT = {"tol": 1e-12}


def sample(seed=0, n=90, d=3):
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.standard_normal((K, d))
    y = rng.integers(0, K, n)
    return centres[y] + rng.standard_normal((n, d)), np.array(list("abcd"))[y]


def tight(*args, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit(*args, **TIGHT, **settings)


def pair_values(objective, X, y, A, **settings):
    """Values of a fit of each pair alone, the later class positive, as a dict by the two classes."""
    classes, values = np.unique(y), {}
    for i in range(K):
        for j in range(i + 1, K):
            rows = (y == classes[i]) | (y == classes[j])
            values[i, j] = tight(objective, X[rows], y[rows], **settings).decision_function(A)
    return values


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "settings",
    [{}, {"kernel": "rbf", "gamma": 0.3}, {"bias": "free"}, {"bias": "none"}],
    ids=lambda s: "-".join(map(str, s)),
)
def test_scores_follow_from_the_fits_of_the_pairs(way, settings):
    X, y = sample()
    A = sample(1, 40)[0]
    # lambda1 depends on m by default; it is given, so that all fits have the same one.
    settings = {"C": 0.7, "lambda1": 2.0, **settings}
    model = tight("ldm", X, y, multiclass=way, **settings)
    D = np.zeros((K, K, A.shape[0]))
    for (i, j), f in pair_values("ldm", X, y, A, **settings).items():
        D[i, j], D[j, i] = -f, f
    scores = np.zeros((A.shape[0], K))
    for i in range(K):
        others = [j for j in range(K) if j != i]
        member = np.minimum(1.0, D[i, others])
        if way == "fuzzy-min":
            scores[:, i] = member.min(axis=0)
        elif way == "fuzzy-avg":
            scores[:, i] = member.mean(axis=0)
        else:
            total = D[i, others].sum(axis=0)
            # Of a value 0, the later class has the vote.
            won = sum((D[i, j] > 0) | ((D[i, j] == 0) & (i > j)) for j in others)
            scores[:, i] = won + total / (3 * (np.abs(total) + 1))
    assert_allclose(model.decision_function(A), scores, atol=2e-5)
    assert_array_equal(model.predict(A), model.classes_[model.decision_function(A).argmax(axis=1)])
    assert model.multiclass == way and model.intercept_.shape == (6,) and model.dual_coef_.shape == (6, X.shape[0])
    assert model.certificate.converged and len(model.certificate.parts) == 6
    assert model.certificate.objective == pytest.approx(sum(p.objective for p in model.certificate.parts))
    assert {state.problem for state in model.history} == set(range(6))


def test_rows_outside_a_pair_have_no_multipliers():
    X, y = sample()
    model = tight("svm", X, y, multiclass="ovo")
    assert model.coef_.shape == (6, 3)
    pairs = [(i, j) for i in range(K) for j in range(i + 1, K)]
    for p, (i, j) in enumerate(pairs):
        outside = ~np.isin(y, model.classes_[[i, j]])
        assert not model.dual_coef_[p, outside].any() and not model.duals[p, outside].any()
        assert_allclose(model.dual_coef_[p] @ X, model.coef_[p], atol=1e-8)


@pytest.mark.parametrize("way", WAYS)
def test_a_weight_is_a_number_of_repetitions(way):
    X, y = sample()
    counts = np.random.default_rng(3).integers(0, 4, len(y))
    weighted = tight("ldm", X, y, multiclass=way, sample_weight=counts)
    repeated = tight("ldm", np.repeat(X, counts, axis=0), np.repeat(y, counts), multiclass=way)
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=2e-5)


def test_two_classes_are_one_problem_whatever_is_asked_for():
    X, y = sample()
    two = np.isin(y, ["a", "b"])
    want = tight("svm", X[two], y[two]).decision_function(X)
    for way in WAYS:
        model = tight("svm", X[two], y[two], multiclass=way)
        assert_array_equal(model.decision_function(X), want)


def test_a_precomputed_kernel_is_cut_to_each_pair():
    X, y = sample()
    G = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(axis=2))
    given = tight("svm", G, y, kernel="precomputed", multiclass="ovo")
    made = tight("svm", X, y, kernel="rbf", gamma=0.3, multiclass="ovo")
    assert_allclose(given.decision_function(G), made.decision_function(X), atol=2e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("way", WAYS)
def test_pairs_are_saved_and_threads_change_nothing(way, kernel, tmp_path):
    X, y = sample()
    model = mdlearn.fit("ldm", X, y, kernel=kernel, multiclass=way, n_threads=1)
    threaded = mdlearn.fit("ldm", X, y, kernel=kernel, multiclass=way, n_threads=2)
    assert_array_equal(model.decision_function(X), threaded.decision_function(X))
    model.save(tmp_path / "m.npz")
    loaded = mdlearn.load(tmp_path / "m.npz")
    assert loaded.multiclass == way
    assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_margins_of_pairs():
    X, y = sample()
    model = tight("svm", X, y, multiclass="fuzzy-min")
    f = model.decision_function(X)
    codes = np.searchsorted(model.classes_, y)
    own = f[np.arange(len(y)), codes]
    f[np.arange(len(y)), codes] = -np.inf
    assert_allclose(model.margins(X, y), own - f.max(axis=1))
    with pytest.raises(ValueError, match="one problem per class"):
        model.margins(X, y, per_class=True)


def test_a_time_limit_ends_all_pairs():
    X, y = sample()
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        model = mdlearn.fit("ldm", X, y, multiclass="ovo", time_limit=0, lambda2=0.0)
    assert not model.coef_.any() and not model.certificate.converged
