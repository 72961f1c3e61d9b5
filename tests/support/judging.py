"""Judges of a fitted model that trust nothing but the printed formula; shared by several test files."""

from __future__ import annotations

import warnings

import numpy as np
from reference import gram, kernel_objective, kernel_optimum, linear_objective, optimum, scale_gamma
from reference_qp import relative_scale

import mdlearn

EPS = np.finfo(float).eps


def engine_names():
    """Engines that promise the optimum on every problem they take; the others are judged in tests of their own."""
    from mdlearn.plugins.registry import registry

    return [name for name in mdlearn.list_solvers() if registry().solvers[name].exact]


def signs(labels, classes):
    """One column of -1/+1 per one-vs-rest problem; the second class is +1 when there are two."""
    labels = np.asarray(labels)
    if len(classes) == 2:
        return np.where(labels == classes[1], 1.0, -1.0)[:, None]
    return np.where(labels[:, None] == np.asarray(classes)[None, :], 1.0, -1.0)


def quiet_fit(*args, **settings):
    """fit without the warning of a gap above tol: the caller judges the objective itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        return mdlearn.fit(*args, **settings)


def kernel_of(X, settings, weight=None, dtype=np.longdouble):
    """Gram matrix of the training rows for fit's arguments, None for the linear kernel."""
    kernel = settings.get("kernel", "linear")
    if kernel == "linear":
        return None
    if kernel == "precomputed":
        return np.asarray(X, dtype=dtype)
    if callable(kernel):
        return np.asarray(kernel(X, X), dtype=dtype)
    gamma = settings.get("gamma", "scale")
    gamma = scale_gamma(X, weight) if isinstance(gamma, str) else gamma
    return gram(X, X, kernel, gamma, settings.get("degree", 3), settings.get("coef0", 0.0), dtype)


def formula(settings, weight):
    """C, lambda1, lambda2, bias of fit's arguments; everything explicit except svm's lambdas."""
    return {
        "C": settings["C"],
        "lambda1": settings.get("lambda1", 0.0),
        "lambda2": settings.get("lambda2", 0.0),
        "bias": settings["bias"],
        "weight": weight,
    }


def true_optimum(X, y, settings, weight=None):
    """The reference's answer for a binary problem with labels -1/+1; it must have proved itself."""
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    G = kernel_of(X, settings, weight)
    parts = formula(settings, weight)
    answer = optimum(X, y, **parts) if G is None else kernel_optimum(G, y, **parts)
    assert answer.gap <= 1e-9, f"the reference itself is not accurate enough here: gap {answer.gap:g}"
    return answer


def recomputed(model, X, y, settings, weight=None, column=0):
    """(objective, rounding) of what the model holds, from coef_ or dual_coef_ and intercept_.

    `rounding` bounds what float64 evaluation can do to it: large terms that cancel inside f or |w|^2.
    """
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    parts = formula(settings, weight)
    target = signs(y, model.classes_)[:, column]
    b = model.intercept_[column]
    G = kernel_of(X, settings, weight)
    if G is None:
        w = model.coef_[column]
        value = linear_objective(X, target, w, b, **parts)
        f_size = np.abs(np.asarray(X, dtype=float)) @ np.abs(w) + abs(b)
        square = w @ w
    else:
        alpha = model.dual_coef_[column]
        value = kernel_objective(G, target, alpha, b, **parts)
        f_size = np.abs(G.astype(float)) @ np.abs(alpha) + abs(b)
        square = np.abs(alpha) @ f_size
    C = parts["C"] if np.isfinite(parts["C"]) else 0.0
    total = weight.sum()
    slope = C * weight + (abs(parts["lambda2"]) + 4 * parts["lambda1"] * f_size.max()) * weight / total
    return value, 16 * EPS * (square + slope @ f_size)


def scale_of(answer, settings, weight, n):
    total = n if weight is None else float(np.sum(weight))
    return relative_scale(answer.value, answer.bound, np.array([total]), settings["C"])


def assert_optimal(model, X, y, settings, weight=None, answer=None, relative=1e-8):
    """The objective is the optimum, the bound is a bound, the certificate tells the truth about both."""
    answer = true_optimum(X, y, settings, weight) if answer is None else answer
    scale = scale_of(answer, settings, weight, len(y))
    held, rounding = recomputed(model, X, y, settings, weight)
    certificate = model.certificate
    slack = 1e-10 * scale + rounding
    where = f"{model.solver}: objective {certificate.objective!r}, optimum {answer.value!r}, gap {certificate.gap:g}"
    assert abs(certificate.objective - held) <= slack, f"{where}; the coefficients give {held!r}"
    assert certificate.lower_bound <= answer.value + slack, f"{where}; false bound {certificate.lower_bound!r}"
    assert certificate.lower_bound <= certificate.objective
    assert held >= answer.bound - slack, f"{where}; below any possible value"
    assert held - answer.value <= relative * scale + rounding, f"{where}: {(held - answer.value) / scale:.2g} above"
    return answer
