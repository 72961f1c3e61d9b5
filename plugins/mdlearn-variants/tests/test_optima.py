"""Every convex variant against an independent optimum, on 20 random problems each."""

import numpy as np
import pytest
from scipy.optimize import minimize

import mdlearn

SEEDS = range(20)
TIGHT = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 100000, "maxfun": 1000000}


def columns(X, bias):
    """Return rows with the column of a bias, and which coefficients are in the squared norm."""
    if bias == "none":
        return X, np.ones(X.shape[1])
    last = 1.0 if bias == "regularized" else 0.0
    return np.column_stack([X, np.ones(len(X))]), np.append(np.ones(X.shape[1]), last)


def check_optimum(model, value):
    """Check a proven model against the value of a solver that may stop short of the optimum, never below it."""
    certificate = model.certificate
    assert certificate.converged and certificate.kind == "duality gap" and certificate.proven
    assert certificate.objective == pytest.approx(value, rel=1e-7)
    assert certificate.lower_bound <= value + 1e-11 * abs(value)


def fit(name, X, y, counts, bias, **given):
    return mdlearn.fit(name, X, y, sample_weight=counts, bias=bias, tol=1e-10, **given)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("distribution", [False, True])
def test_pinball(program, sample, seed, distribution):
    X, y, _, counts, bias = sample(seed)
    F, penalized = columns(X, bias)
    given = {"C": 0.7, "tau": 0.3}
    weights = {"lambda1": 0.6, "lambda2": 0.4} if distribution else {}
    own = {"v": 1.2, "a": 0.4} if distribution else {}
    hinges = [(0.7 * counts, 1, 1.0), (0.3 * 0.7 * counts, -1, 1.0)]
    value, _ = program(y[:, None] * F, penalized, counts, hinges, **own)
    check_optimum(fit("pinball_ldm" if distribution else "pinball_svm", X, y, counts, bias, **given, **weights), value)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("distribution", [False, True])
def test_costs(program, sample, seed, distribution):
    X, y, _, counts, bias = sample(seed)
    F, penalized = columns(X, bias)
    costs = np.random.default_rng(seed).uniform(0.0, 3.0, len(y))
    given = {"C": 0.5, "costs": costs, "class_costs": {1: 4.0}}
    weights = {"lambda1": 0.6, "lambda2": 0.1} if distribution else {}
    own = {"v": 1.2, "a": 0.1} if distribution else {}
    hinges = [(0.5 * counts * costs * np.where(y == 1, 4.0, 1.0), 1, 1.0)]
    value, _ = program(y[:, None] * F, penalized, counts, hinges, **own)
    check_optimum(fit("cost_ldm" if distribution else "fuzzy_svm", X, y, counts, bias, **given, **weights), value)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lambda1", [0.0, 2.0])
def test_tube_and_quantile(program, sample, seed, lambda1):
    X, _, numbers, counts, bias = sample(seed)
    F, penalized = columns(X, bias)
    own = {"v": 2 * lambda1, "targets": numbers}
    value, _ = program(F, penalized, counts, [(2.0 * counts, 1, -0.3), (2.0 * counts, -1, 0.3)], **own)
    check_optimum(fit("tube_variance", X, numbers, counts, bias, C=2.0, epsilon=0.3, lambda1=lambda1), value)
    value, _ = program(F, penalized, counts, [(0.6 * counts, 1, 0.0), (1.4 * counts, -1, 0.0)], **own)
    check_optimum(fit("quantile_variance", X, numbers, counts, bias, C=2.0, tau=0.3, lambda1=lambda1), value)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("distribution", [False, True])
def test_one_class(program, sample, seed, distribution):
    X, _, _, counts, bias = sample(seed)
    X = X + 1.0
    bias = "none" if bias == "free" else bias
    F, penalized = columns(X, bias)
    weights = {"lambda1": 0.6, "lambda2": 0.4} if distribution else {}
    own = {"v": 1.2, "a": 0.4} if distribution else {}
    value, _ = program(F, penalized, counts, [(0.3 * counts, 1, 1.0)], **own)
    name = "one_class_ldm" if distribution else "one_class_svm"
    check_optimum(fit(name, X, None, counts, bias, C=0.3, **weights), value)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("distribution", [False, True])
def test_ordinal(program, sample, seed, distribution):
    X, _, numbers, counts, bias = sample(seed)
    F, penalized = columns(X, bias)
    y = np.digitize(numbers, np.quantile(numbers, [0.3, 0.6, 0.8]))
    margins, C = [], 0.6
    for label, row in zip(y, F):
        for place in range(3):
            sign = 1.0 if label > place else -1.0
            margins.append(sign * np.append(row, -np.eye(3)[place]))
    own = {"v": 1.2, "a": 0.1} if distribution else {}
    weights = {"lambda1": 0.6, "lambda2": 0.1} if distribution else {}
    each = np.repeat(counts, 3)
    value, _ = program(np.array(margins), np.append(penalized, np.ones(3)), each, [(C * each, 1, 1.0)], **own)
    model = fit("ordinal_ldm" if distribution else "ordinal_svm", X, y, counts, bias, C=C, **weights)
    check_optimum(model, value)
    # The printed sum, from coefficients and thresholds of the model.
    z = model.decision_function(X)[:, None] - model.thresholds_
    z = np.where(y[:, None] > np.arange(3), z, -z)
    mean = counts @ z.mean(axis=1) / counts.sum()
    own_value = 0.5 * model.coef_[0] @ model.coef_[0] + 0.5 * model.thresholds_ @ model.thresholds_
    own_value += 0.5 * float(model.intercept_[0]) ** 2 * (bias == "regularized")
    own_value += C * counts @ np.maximum(0.0, 1.0 - z).sum(axis=1) - own.get("a", 0.0) * mean
    own_value += own.get("v", 0.0) * counts @ ((z - mean) ** 2).mean(axis=1) / counts.sum()
    assert model.certificate.objective == pytest.approx(own_value, rel=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_ranking(program, sample, seed):
    X, _, numbers, counts, _ = sample(seed)
    query, y = np.arange(len(X)) % 2, np.round(numbers)
    pairs = [(i, j) for i in range(len(X)) for j in range(len(X)) if y[i] > y[j] and query[i] == query[j]]
    high, low = np.transpose(pairs)
    each = counts[high] * counts[low]
    value, _ = program(X[high] - X[low], np.ones(3), each, [(0.2 * each, 1, 1.0)])
    model = fit("rank_svm", X, y, counts, "none", C=0.2, query=query)
    check_optimum(model, value)
    f = model.predict(X)
    own = 0.5 * model.coef_[0] @ model.coef_[0] + 0.2 * each @ np.maximum(0.0, 1.0 - f[high] + f[low])
    assert model.certificate.objective == pytest.approx(own, rel=1e-11)
    right = sum(counts[i] * counts[j] for i, j in pairs if f[i] > f[j])
    assert model.score(X, y, counts, query) == pytest.approx(right / each.sum())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lambda1", [0.0, 2.0])
def test_huber(sample, seed, lambda1):
    X, _, numbers, counts, bias = sample(seed)
    (F, penalized), share, delta = columns(X, bias), counts / counts.sum(), 0.4

    def objective(w):
        r = F @ w - numbers
        away, size = r - share @ r, np.abs(r)
        loss = np.where(size <= delta, 0.5 * r**2, delta * (size - 0.5 * delta))
        value = 0.5 * penalized @ w**2 + 2 * lambda1 * share @ away**2 + 3.0 * counts @ loss
        slope = penalized * w + F.T @ (4 * lambda1 * share * away + 3.0 * counts * np.clip(r, -delta, delta))
        return value, slope

    value = minimize(objective, np.zeros(F.shape[1]), jac=True, method="L-BFGS-B", options=TIGHT).fun
    check_optimum(fit("huber_variance", X, numbers, counts, bias, C=3.0, delta=delta, lambda1=lambda1), value)


@pytest.mark.parametrize("seed", SEEDS)
def test_msvmav(sample, seed):
    X, y, _, counts, bias = sample(seed)
    bias = "none" if bias == "free" else bias
    F, penalized = columns(X, bias)
    A, share = y[:, None] * F, counts / counts.sum()

    def objective(w):
        z = A @ w
        mean = share @ z
        short = np.maximum(mean - z, 0.0)
        value = 0.5 * penalized @ w**2 - 2.0 * mean + 5.0 * share @ short**2
        pulled = A.T @ share
        return value, penalized * w - 2.0 * pulled + 10.0 * (share @ short * pulled - A.T @ (share * short))

    value = minimize(objective, np.zeros(F.shape[1]), jac=True, method="L-BFGS-B", options=TIGHT).fun
    check_optimum(fit("msvmav", X, y, counts, bias, lambda1=5.0, lambda2=2.0), value)


def dual_optimum(A, group, lengths, counts, C, v, a):
    """Largest dual value of the squared hinge with variance, mean, squares and lengths of groups, by L-BFGS-B."""
    m, share = len(A), counts / counts.sum()
    members = np.equal.outer(np.arange(len(lengths)), group).astype(float)

    def negative(x):
        beta, rho = x[:m], x[m:]
        sigma = rho - share * rho.sum() if v else np.zeros(m)
        pulled = A.T @ (beta + sigma + a * share)
        size = np.sqrt(members @ pulled**2)
        over = np.maximum(size - lengths, 0.0)
        w = pulled * (over / np.where(size > 0, size, 1.0))[group]
        by_rows = A @ w
        value = 0.5 * over @ over - beta.sum() + (beta**2 / (4 * C * counts)).sum()
        slope_beta, slope_rho = by_rows - 1.0 + beta / (2 * C * counts), np.zeros(m)
        if v:
            value += (sigma**2 / (4 * v * share)).sum()
            by_sigma = by_rows + sigma / (2 * v * share)
            slope_rho = by_sigma - share @ by_sigma
        return value, np.append(slope_beta, slope_rho)

    bounds = [(0, None)] * m + [(None, None)] * m
    found = minimize(negative, np.zeros(2 * m), jac=True, bounds=bounds, method="L-BFGS-B", options=TIGHT)
    return -found.fun


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("distribution", [False, True])
@pytest.mark.parametrize("name", ["elastic_net", "group_lasso"])
def test_penalties(sample, seed, distribution, name):
    X, y, _, counts, bias = sample(seed, d=3)
    X = np.column_stack([X, np.random.default_rng(seed + 99).standard_normal((len(X), 3))])
    bias = "none" if bias == "free" else bias
    F, _ = columns(X, bias)
    weights = {"lambda1": 0.6, "lambda2": 0.4} if distribution else {}
    v, a = (1.2, 0.4) if distribution else (0.0, 0.0)
    if name == "elastic_net":
        group, lengths, given = np.arange(F.shape[1]), np.full(F.shape[1], 4.0), {"l1": 4.0}
    else:
        groups = np.array([5, 5, 2, 9, 9, 9])
        group, lengths = np.array([1, 1, 0, 2, 2, 2, 3]), 3.0 * np.sqrt([1.0, 2.0, 3.0, 0.0])
        group, given = group[: F.shape[1]], {"group": 3.0, "groups": groups}
    value = dual_optimum(y[:, None] * F, group, lengths, counts, 0.3, v, a)
    model = fit(f"{name}_ldm" if distribution else f"{name}_svm", X, y, counts, bias, C=0.3, **given, **weights)
    certificate = model.certificate
    assert certificate.converged and certificate.proven
    assert certificate.objective == pytest.approx(value, rel=1e-7)
    # What is compared with is a lower bound here, and so is that of the certificate.
    slack = 1e-11 * abs(value)
    assert max(value, certificate.lower_bound) - slack <= certificate.objective
    assert certificate.lower_bound <= value * (1 + 1e-7)


def test_features_and_groups_are_left_out(sample):
    X, y, _, counts, _ = sample(3, m=60)
    rng = np.random.default_rng(0)
    X = np.column_stack([X, rng.standard_normal((60, 6))])
    groups = np.repeat([0, 1, 2], 3)
    plain = fit("elastic_net_svm", X, y, counts, "none", C=0.1, l1=6.0)
    assert 0 < np.count_nonzero(plain.coef_) < 9
    grouped = fit("group_lasso_svm", X, y, counts, "none", C=0.1, group=6.0, groups=groups)
    there = (grouped.coef_.reshape(3, 3) != 0).sum(axis=1)
    assert set(there) == {0, 3}
    single = fit("group_lasso_svm", X, y, counts, "none", C=0.1, group=6.0)
    assert single.decision_function(X) == pytest.approx(plain.decision_function(X), abs=1e-4)


def least_with_slacks(F, d, counts, C, ridge, v, a, terms):
    """Return the least ridge/2 w^2 + v Var - a mean + C sum of hinges + sum |K w|, by slacks; K w >= 0 for weight 0."""
    (m, n), share = F.shape, counts / counts.sum()
    wide = [(weight, np.hstack([K, np.zeros((len(K), n - d))])) for weight, K in terms]
    size = n + m + sum(len(K) for weight, K in wide if weight)
    cost, rows, right, start = (
        np.zeros(size),
        [np.hstack([F, np.eye(m), np.zeros((m, size - n - m))])],
        [np.ones(m)],
        n + m,
    )
    cost[n : n + m] = C * counts
    for weight, K in wide:
        for side in (1.0, -1.0) if weight else (1.0,):
            row = np.zeros((len(K), size))
            row[:, :n] = side * K
            if weight:
                row[np.arange(len(K)), start + np.arange(len(K))] = 1.0
            rows.append(row)
            right.append(np.zeros(len(K)))
        if weight:
            cost[start : start + len(K)] = weight
            start += len(K)
    A, b = np.vstack(rows), np.concatenate(right)
    squares, mean = ridge, share @ F
    H = np.diag(squares) + 2.0 * v * (F - mean).T @ (share[:, None] * (F - mean))
    bounds = [(None, None)] * n + [(0, None)] * (size - n)

    def value(u):
        w = u[:n]
        return 0.5 * w @ H @ w - a * mean @ w + cost @ u, cost + np.append(H @ w - a * mean, np.zeros(size - n))

    room = {"type": "ineq", "fun": lambda u: A @ u - b, "jac": lambda u: A}
    start, least = np.append(np.zeros(n), np.ones(size - n)), np.inf
    for _ in range(10):
        options = {"ftol": 1e-15, "maxiter": 1000}
        found = minimize(value, start, jac=True, bounds=bounds, constraints=room, method="SLSQP", options=options)
        start, gain, least = found.x, least - found.fun, min(least, found.fun)
        if gain <= 1e-12 * abs(least):
            break
    assert (A @ start - b).min() > -1e-8
    return least


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["l1_svm", "doubly_regularized_svm", "fused_svm", "nonnegative_ldm"])
def test_penalties_beside_the_hinge(sample, seed, name):
    X, y, _, counts, bias = sample(seed, d=3)
    X = np.column_stack([X, np.random.default_rng(seed + 99).standard_normal((len(X), 2))])
    F, squares = columns(X, bias)
    one, differences, C = np.eye(5), np.diff(np.eye(5), axis=0), 0.8
    given, terms, v, a = {
        "l1_svm": ({}, [(1.0, one)], 0.0, 0.0),
        "doubly_regularized_svm": ({"l1": 1.5}, [(1.5, one)], 0.0, 0.0),
        "fused_svm": ({"l1": 0.5, "fused": 2.0}, [(0.5, one), (2.0, differences)], 0.0, 0.0),
        "nonnegative_ldm": ({"lambda1": 0.6, "lambda2": 0.4}, [(0.0, one)], 1.2, 0.4),
    }[name]
    if name == "l1_svm":
        squares = np.zeros(len(squares))
    value = least_with_slacks(y[:, None] * F, 5, counts, C, squares, v, a, terms)
    model = fit(name, X, y, counts, bias, C=C, **given)
    check_optimum(model, value)
    assert name != "nonnegative_ldm" or (model.coef_ >= 0).all()
