"""Labels of which some are unknown: stationary points, found outside of the engine; and several labels a row."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import mdlearn

SEEDS = range(20)
BAND = {"C": 0.6, "mu": 0.4, "theta": 0.3}


def columns(X, bias):
    if bias == "none":
        return X, np.ones(X.shape[1])
    return np.column_stack([X, np.ones(len(X))]), np.append(np.ones(X.shape[1]), float(bias == "regularized"))


def coefficients(model, bias, j=0):
    return model.coef_[j] if bias == "none" else np.append(model.coef_[j], model.intercept_[j])


def band(z):
    """Loss of margins, as printed, and its slope."""
    C, mu, theta = BAND.values()
    short, beyond = np.maximum(0.0, 1 - theta - z), np.maximum(0.0, z - 1 - theta)
    return C / (1 - theta) ** 2 * np.array([short**2 + mu * beyond**2, 2 * (mu * beyond - short)])


def least(F, penalized, straight, turned):
    """min 1/2 w' penalized w + sum straight l(f) + turned l(-f), by second-order steps that scipy takes."""

    def value(w):
        (one, slope), (other, back) = band(F @ w), band(-F @ w)
        return 0.5 * penalized @ w**2 + straight @ one + turned @ other, penalized * w + F.T @ (
            straight * slope - turned * back
        )

    found = minimize(value, np.zeros(F.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 10000})
    return found.fun, found.x


# ---------------------------------------------------------------- several labels


@pytest.mark.parametrize("seed", SEEDS)
def test_multi_label_odm(sample, seed):
    X, y, numbers, counts, bias = sample(seed)
    F, penalized = columns(X, bias)
    labels = np.column_stack([y > 0, numbers > 0.5, numbers * y > 0.2]).astype(int)
    model = mdlearn.fit("multi_label_odm", X, labels, sample_weight=counts, bias=bias, tol=1e-11, **BAND)
    values = [least(F, penalized, counts * own, counts * (1 - own))[0] for own in labels.T]
    assert model.certificate.converged and model.certificate.proven
    for part, value in zip(model.certificate.parts, values):
        assert part.objective == pytest.approx(value, rel=1e-7) and part.lower_bound <= value * (1 + 1e-11)
    # The printed sum, from the matrix of the model's margins.
    z = model.margins(X, labels, per_class=True)
    own = 0.5 * sum(penalized @ coefficients(model, bias, j) ** 2 for j in range(3)) + counts @ band(z)[0].sum(axis=1)
    assert model.certificate.objective == pytest.approx(own, rel=1e-11)


def test_labels_of_rows_are_found_again():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] + X[:, 2] > 0.5, X[:, 3] < 1.0]).astype(int)
    model = mdlearn.fit("multi_label_odm", X[:200], labels[:200], C=10.0)
    assert model.score(X[200:], labels[200:]) > 0.9 and model.predict(X).sum(axis=1).max() == 3
    found = mdlearn.select("multi_label_odm", X, labels, grid={"C": [1e-6, 1.0]}, scoring="f1_macro", cv=3)
    assert found.points[found.best_index] == {"C": 1.0}


# ---------------------------------------------------------------- unknown labels


def partly(seed, sample, m=30):
    X, y, _, counts, bias = sample(seed, m=m)
    known = np.arange(m) % 3 == 0
    if len(set(y[known])) < 2:
        y[np.flatnonzero(known)[:2]] = -1, 1
    return X, np.where(known, (y > 0).astype(int), -1), np.where(y > 0, 1.0, -1.0), known, counts, bias


def best_labels(f, counts, positive):
    """Shares of the label +1 of least price with the given sum, which linear programming finds; and the price."""
    prices = counts * (band(f)[0] - band(-f)[0])
    found = linprog(prices, A_eq=counts[None, :], b_eq=[positive], bounds=(0.0, 1.0), method="highs-ds")
    return found.x, found.fun + counts @ band(-f)[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stationary_point_of_unknown_labels(sample, seed):
    X, y, signs, known, counts, bias = partly(seed, sample)
    (F, penalized), unknown = columns(X, bias), 0.7
    given = {**BAND, "unknown": unknown, "sample_weight": counts, "bias": bias}
    model = mdlearn.fit("semi_odm", X, y, tol=1e-10, **given)
    certificate, w = model.certificate, coefficients(model, bias)
    assert certificate.converged and certificate.kind == "residual" and certificate.lower_bound == -np.inf
    assert certificate.vouched_by == "mdlearn_variants.semi_supervised.UnknownLabelsProblem"
    # The printed objective, with labels that a linear program chooses.
    f, own, others = F @ w, counts[known], counts[~known]
    positive = own @ (signs[known] > 0) / own.sum() * others.sum()
    q, price = best_labels(f[~known], others, positive)
    value = 0.5 * penalized @ w**2 + own @ band(signs[known] * f[known])[0] + unknown * price
    assert certificate.objective == pytest.approx(value, rel=1e-10)
    # The convex problem of these labels has no smaller value than it, and so the same optimum.
    straight, turned = np.where(signs > 0, counts, 0.0), np.where(signs > 0, 0.0, counts)
    straight[~known], turned[~known] = unknown * others * q, unknown * others * (1 - q)
    touching, at = least(F, penalized, straight, turned)
    assert touching == pytest.approx(value, rel=1e-7) and w == pytest.approx(at, abs=1e-3)
    # It is no worse than where the way began: the machine of the known labels.
    first = mdlearn.fit("semi_odm", X[known], y[known], **{**given, "sample_weight": own}, tol=1e-12)
    begin = coefficients(first, bias)
    _, price = best_labels((F @ begin)[~known], others, positive)
    z = signs[known] * (F @ begin)[known]
    assert value <= (0.5 * penalized @ begin**2 + own @ band(z)[0] + unknown * price) * (1 + 1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_without_unknown_rows_it_is_the_odm(sample, seed):
    X, y, signs, known, counts, bias = partly(seed, sample)
    F, penalized = columns(X, bias)
    plain, _ = least(F, penalized, counts * (signs > 0), counts * (signs < 0))
    whole = mdlearn.fit("semi_odm", X, (signs > 0).astype(int), sample_weight=counts, bias=bias, tol=1e-10, **BAND)
    assert whole.certificate.objective == pytest.approx(plain, rel=1e-7)
    # Unknown rows of no weight change nothing.
    part = mdlearn.fit("semi_odm", X[known], y[known], sample_weight=counts[known], bias=bias, tol=1e-12, **BAND)
    same = mdlearn.fit("semi_odm", X, y, sample_weight=counts, bias=bias, tol=1e-12, unknown=0.0, **BAND)
    assert same.decision_function(X) == pytest.approx(part.decision_function(X), abs=1e-4)


def test_unknown_rows_help_where_there_are_few_labels():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.standard_normal((200, 2)) * [1.5, 0.3] + [0.0, side] for side in (1.0, -1.0)])
    truth = np.repeat([1, 0], 200)
    y = np.full(400, -1)
    y[[0, 1, 200, 201]] = truth[[0, 1, 200, 201]]
    alone = mdlearn.fit("semi_odm", X[y >= 0], y[y >= 0])
    model = mdlearn.fit("semi_odm", X, y)
    assert (model.predict(X) == truth).mean() > 0.99 > (alone.predict(X) == truth).mean()
    floats = np.where(y < 0, np.nan, y)
    assert np.array_equal(mdlearn.fit("semi_odm", X, floats).coef_, model.coef_)
    assert mdlearn.cross_validate("semi_odm", X, y, cv=2).mean == 1.0


def test_the_estimator(sample):
    pytest.importorskip("sklearn", reason="estimators need scikit-learn")
    from mdlearn import sklearn

    X, y, _, _, _, _ = partly(0, sample)
    clf = sklearn.MarginClassifier("semi_odm", params={"unknown": 0.5}).fit(X, y)
    same = mdlearn.fit("semi_odm", X, y, unknown=0.5, tol=1e-10)
    assert np.array_equal(clf.predict(X), same.predict(X)) and clf.score(X, y) == same.score(X, y)
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    assert sklearn.MarginClassifier("multi_label_odm").fit(X, labels).predict(X).shape == labels.shape


def test_files_of_both(sample, tmp_path):
    X, y, _, _, _, _ = partly(1, sample)
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    for name, given in (("semi_odm", y), ("multi_label_odm", labels)):
        model = mdlearn.fit(name, X, given)
        model.save(tmp_path / "model.npz")
        again = mdlearn.load(tmp_path / "model.npz")
        assert type(again) is type(model) and np.array_equal(again.decision_function(X), model.decision_function(X))
        assert again.score(X, given) == model.score(X, given)
