"""Checks of conformance: each is one promise of an objective, with messages for its author."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from mdlearn.api import fit
from mdlearn.driver.checked_engine import engine_takes_form
from mdlearn.driver.choice import choose_solver
from mdlearn.forms.margin import BIASES
from mdlearn.model.file.loading import load_model_file
from mdlearn.model.task import task_of
from mdlearn.objectives.base import Objective
from mdlearn.plugins.registry import registry
from mdlearn.testing.composites import check_composite, check_composite_certificate
from mdlearn.testing.declaration import check_bounds, check_declaration, check_params, check_unknown_parameter
from mdlearn.testing.reference import (
    GAMMA,
    ROUNDING,
    ReferenceObjective,
    reference_certificates,
    reference_fit,
    reference_form,
    reference_has_terms,
    reference_kernels,
    reference_mapped,
    reference_moved,
    reference_of_rows,
    reference_rbf_matrix,
    reference_sample,
    reference_task,
)
from mdlearn.testing.require import CLOSE, require, require_clauses, require_close, require_error
from mdlearn.testing.values_by_row import (
    require_length_of_values_by_row,
    require_row_terms_of_rows_alone,
    values_made_by_row,
)


def check_certificate(objective: Any) -> None:
    """Check that objective, lower bound and gap hold for the model's coefficients, also beside the defaults."""
    if not reference_has_terms(objective):
        check_composite_certificate(objective)
        return
    _check_certificate_values(objective, "")
    moved = reference_moved(objective)
    if moved:
        at = ", ".join(f"{name}={value:g}" for name, value in moved.items())
        _check_certificate_values(reference_task(objective, **moved), f" at {at}")


def _check_certificate_values(objective: Any, at: str) -> None:
    """Check the values of certificates, for parameters that `at` names."""
    for settings in reference_kernels(objective):
        X, y, counts = reference_sample(objective)
        model = reference_fit(objective, X, y, sample_weight=counts, **settings)
        judge = ReferenceObjective(objective, model, X, y, counts)
        where = f"{model.objective}, {settings['kernel']} kernel{at}"
        for j, certificate in enumerate(reference_certificates(model)):
            held = judge.model_objective(j)
            require(
                abs(certificate.objective - held) <= ROUNDING * judge.scale,
                f"{where}: the certificate says {certificate.objective!r}, but terms() at the coefficients give "
                f"{held!r}; form() needs to pass on the terms, y as -1/+1 of data.codes, and data.counts",
            )
            low, hard = certificate.lower_bound, any(term.hard for term in judge.terms.loss)
            least = max(abs(low) if hard else 0.01 * abs(judge.at_zero), np.finfo(float).tiny)
            gap = (certificate.objective - low) / max(abs(certificate.objective), least)
            require(
                low <= certificate.objective and abs(gap - certificate.gap) <= ROUNDING,
                f"{where}: objective {certificate.objective!r} and lower bound {low!r} do not make the gap "
                f"{certificate.gap!r}; form() needs to pass on the terms that terms() returns",
            )


def check_perturbations(objective: Any) -> None:
    """Check that none of 100 random changes of the coefficients takes the objective below its lower bound."""
    if not reference_has_terms(objective):
        return  # part of the check before
    rng = np.random.default_rng(0)
    for settings in reference_kernels(objective):
        X, y, counts = reference_sample(objective)
        model = reference_fit(objective, X, y, sample_weight=counts, **settings)
        judge, low = ReferenceObjective(objective, model, X, y, counts), reference_certificates(model)[0].lower_bound
        coef, b = judge.coefs[0], float(model.intercept_[0])
        for size in np.logspace(-6, 1, 100):
            step = size * (float(np.abs(coef).max()) or 1.0)
            free = np.diagonal(judge.M) > 0  # rows outside a basis have no coefficient
            shift = 0.0 if model.bias == "none" else step * rng.standard_normal()
            value = judge.value(0, coef + step * free * rng.standard_normal(coef.shape), b + shift)
            require(
                value >= low - ROUNDING * judge.scale,
                f"{model.objective}, {settings['kernel']} kernel: other coefficients reach {value!r}, below the "
                f"certified bound {low!r}; the problem is not convex (variance < 0?) or form() is not terms()",
            )


def check_weights(objective: Any) -> None:
    """Check that integer weights equal repeated rows, and that weight 0 equals a row left out."""
    for settings in reference_kernels(objective):
        for k in (2, 3):
            X, y, counts = reference_sample(objective, k)
            classes = f", {k} classes" if task_of(reference_task(objective)).y == "labels" else ""
            weighted = reference_fit(objective, X, y, sample_weight=counts, **settings)
            rows = np.repeat(np.arange(len(X)), counts)
            repeated = reference_fit(reference_of_rows(objective, rows), X[rows], y[rows], **settings)
            require_close(
                (weighted, X),
                (repeated, X),
                f"integer weights and repeated rows give different models ({settings['kernel']} kernel{classes}); "
                "use `total` for m, data.counts for every sum over rows, and row_values for what callers gave by row",
            )


def check_row_order(objective: Any) -> None:
    """Check that the order of the rows does not matter."""
    for settings in reference_kernels(objective):
        X, y, counts = reference_sample(objective, 3)
        order = np.argsort(X[:, 0])
        straight = reference_fit(objective, X, y, sample_weight=counts, **settings)
        own = reference_of_rows(objective, order)
        mixed = reference_fit(own, X[order], y[order], sample_weight=counts[order], **settings)
        require_close((straight, X), (mixed, X), "the order of the rows matters; nothing may depend on positions")


def check_values_by_row(objective: Any) -> None:
    """Check settings that hold a value for each row of X: values go with their rows, and certificates know of them."""
    task = reference_task(objective)
    own = values_made_by_row(task)
    if type(task).row_terms is Objective.row_terms and not own:
        return
    whole = reference_task(objective, **own)
    for check in CHECKS_OF_VALUES_BY_ROW if own else ():
        require_clauses(f"with {' and '.join(own)} by row", (check,), whole)
    for name, values in own.items() if len(own) > 1 else ():
        alone = reference_task(objective, **{name: values})
        require_clauses(f"with {name} by row, alone", (check_weights_where_taken,), alone)
    require_length_of_values_by_row(whole, own)
    require_row_terms_of_rows_alone(whole)


def check_weights_where_taken(objective: Any) -> None:
    """Check weights as before, where an objective takes what it was given."""
    try:
        reference_fit(objective, *reference_sample(objective)[:2])
    except (TypeError, ValueError):
        return
    check_weights(objective)


def check_engines_agree(objective: Any) -> None:
    """Check that engine "auto" and all engines that take the problem give the same decision values."""
    task = reference_task(objective)
    X, y, _ = reference_sample(objective)
    for settings in reference_kernels(objective):
        for bias in BIASES:
            try:
                form = reference_form(task, X, y, bias, settings["kernel"])
            except ValueError:
                if bias == task.default_bias:
                    raise
                continue
            # The others promise no optimum, or not in reasonable time.
            exact = {name: cls for name, cls in registry().solvers.items() if cls.exact}
            able = [name for name, cls in exact.items() if engine_takes_form(cls, form) and cls().reaches(form)]
            where = f"{settings['kernel']} kernel, bias {bias}"
            require(
                choose_solver(form, registry().solvers.values()).solver in able,
                f"{task.name}: solver='auto' has no engine for {where}",
            )
            models = [reference_fit(objective, X, y, solver=name, bias=bias, **settings) for name in able]
            for model in models[1:]:
                told = f"engines {models[0].solver} and {model.solver} disagree ({where}); one of them is wrong"
                require_close((models[0], X), (model, X), told)


def check_determinism(objective: Any) -> None:
    """Check that the same call gives the same bits, and that random_state=None is 0."""
    for settings in reference_kernels(objective):
        X, y, counts = reference_sample(objective)
        first, *others = (
            reference_fit(objective, X, y, sample_weight=counts, random_state=s, **settings) for s in (None, 0, 0)
        )
        same = all(np.array_equal(first.decision_function(X), other.decision_function(X)) for other in others)
        require(same, f"{first.objective}: the same call gives other bits; draw no random numbers and keep no state")


def check_string_labels(objective: Any) -> None:
    """Check that strings and booleans serve as labels: only their order counts; a regression refuses strings."""
    X, y, counts = reference_sample(objective)
    number = reference_fit(objective, X, y, sample_weight=counts)
    kind = task_of(reference_task(objective)).y
    if kind not in ("labels", "some labels"):
        words = np.where(y > 0, "yes", "no")
        accepted = f"{number.objective}: strings are accepted as numbers; leave y to mdlearn"
        require_error(TypeError, lambda: fit(objective, X, words), accepted)
        return
    for classes in (np.array(["no", "yes"]), np.array([False, True])):
        names = classes[y]
        if kind == "some labels":
            names = names.astype(object)
            names[y < 0] = None
        named = reference_fit(objective, X, names, sample_weight=counts)
        require(
            np.array_equal(named.decision_function(X), number.decision_function(X))
            and np.array_equal(named.predict(X), classes[number.predict(X)]),
            f"{named.objective}: labels {classes.tolist()} give another model than [0, 1]; use data.codes, never the "
            "labels themselves",
        )


def check_precomputed(objective: Any) -> None:
    """Check that the kernel rbf and its matrix given as precomputed make the same model, where that will do."""
    if not reference_task(objective).kernels or reference_task(objective).needs_rows:
        return
    X, y, counts = reference_sample(objective)
    rbf = reference_fit(objective, X, y, sample_weight=counts, kernel="rbf", gamma=GAMMA)
    given = reference_fit(objective, reference_rbf_matrix(X, X), y, sample_weight=counts, kernel="precomputed")
    Z = reference_sample(objective)[0][:7] + 0.1
    told = "kernel rbf and its precomputed matrix disagree; form() needs to pass on `features` as it is"
    require_close((rbf, Z), (given, reference_rbf_matrix(Z, X)), told)


def check_model(objective: Any) -> None:
    """Check shapes and meaning of what a model of two classes, or of numbers, offers."""
    X, y, counts = reference_sample(objective)
    d, total = X.shape[1], int((counts > 0).sum())
    for settings in reference_kernels(objective):
        model = reference_fit(objective, X, y, sample_weight=counts, **settings)
        f, name = model.decision_function(X), f"{model.objective}, {settings['kernel']} kernel: "
        task = task_of(reference_task(objective))
        k = {"labels": 2, "some labels": 2, "indicators": 3}.get(task.y, 0)
        p = k if task.y == "indicators" else 1
        shapes = {"intercept_": (p,), "n_support_": (max(k, 1),), "classes_": (k,)}
        for attribute, shape in shapes.items():
            require(np.shape(getattr(model, attribute)) == shape, f"{name}{attribute} needs the shape {shape}")
        linear = settings["kernel"] == "linear"
        require(hasattr(model, "coef_") == linear, f"{name}coef_ exists for the linear kernel, and only there")
        wanted = (p, d) if model._map is None else (p, *np.shape(getattr(model, "coef_", ()))[1:])
        require(not linear or model.coef_.shape == wanted, f"{name}coef_ needs the shape {wanted}")
        judge = ReferenceObjective(objective, model, X, y, counts) if reference_has_terms(objective) else None
        plain = judge is not None and judge.terms.penalty == 0 and not judge.terms.coefficient_terms
        if judge is not None and judge.terms.ridge > 0 and plain:
            _check_model_combination(model, X, judge.F, counts, name)
        within = model.support_.shape[0] <= total
        if task.y not in ("some labels", "indicators"):
            within = within and model.n_support_.sum() == model.support_.shape[0]
        require(within, f"{name}n_support_ does not fit support_")
        if not task.built_in:
            require(type(model) is task.model, f"{name}the model is no {task.model.__name__}")
            predicted = model.predict(X)
            same = np.shape(predicted)[:1] == X.shape[:1] and np.array_equal(predicted, model.predictions(f))
            require(same, f"{name}predict is not predictions(decision_function(X)), one per row")
            score = float(model.score(X, y, counts))
            require(np.isfinite(score), f"{name}score is {score!r}, a finite number is needed")
            again = model.score(np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0))
            require(abs(again - score) <= CLOSE, f"{name}score needs to count rows as their weights say")
        elif k == 0:
            require(np.array_equal(model.predict(X), f), f"{name}predict is not f")
        else:
            require(np.array_equal(model.predict(X), (f >= 0).astype(int)), f"{name}predict is not the sign of f")
            require(np.array_equal(model.margins(X, y), np.where(y == 1, f, -f)), f"{name}margins are not y f")
        require(bool(model.history) and model.n_iter == len(model.history), f"{name}n_iter and history do not fit")


def _check_model_combination(model: Any, X: np.ndarray, F: np.ndarray, counts: np.ndarray, name: str) -> None:
    """Check that w is a combination of the rows, where the norm is squared."""
    shape = model.intercept_.shape[0], X.shape[0]
    require(model.dual_coef_.shape == shape, f"{name}dual_coef_ needs the shape {shape}")
    alpha, f = model.dual_coef_.T, model.decision_function(X).reshape(X.shape[0], -1)
    G = F @ F.T if model.kernel.name == "linear" else F
    far = float((np.abs(G @ alpha + model.intercept_ - f) / np.maximum(1.0, np.abs(f))).max())
    require(far <= 10 * CLOSE, f"{name}dual_coef_ and decision_function differ by {far:.2g}; see Point")
    require(not alpha[counts == 0].any(), f"{name}rows of weight 0 have dual coefficients; use data.counts")


def check_three_classes(objective: Any) -> None:
    """Check that three classes make three problems, each with a certificate that holds, except joint problems."""
    task = reference_task(objective)
    if "ovr" not in task_of(task).ways(task.multiclass):
        return
    X, y, counts = reference_sample(objective, 3)
    for settings in reference_kernels(objective):
        model = reference_fit(objective, X, y, sample_weight=counts, multiclass="ovr", **settings)
        f, parts, name = model.decision_function(X), model.certificate.parts, f"{model.objective}, three classes: "
        require(f.shape == (X.shape[0], 3), f"{name}decision_function needs one column per class; form() makes them")
        require(np.array_equal(model.predict(X), f.argmax(axis=1)), f"{name}predict is not the largest score")
        require(len(parts) == 3, f"{name}the certificate has {len(parts)} parts; form() needs one column per class")
        if not reference_has_terms(objective):
            continue
        judge = ReferenceObjective(objective, model, X, y, counts)
        for j, part in enumerate(parts):
            require(
                abs(part.objective - judge.model_objective(j)) <= ROUNDING * judge.scale,
                f"{name}part {j} of the certificate says {part.objective!r}, but terms() at the coefficients of class "
                f"{j} give {judge.model_objective(j)!r}; column j of form() needs +1 where data.codes is j",
            )


def check_features(objective: Any) -> None:
    """Check an objective's own features: each row's depend on it alone, make decision values, and are saved."""
    task = reference_task(objective)
    X, y, counts = reference_sample(objective)
    model = reference_fit(objective, X, y, sample_weight=counts)
    place, named = model._map, task.feature_map
    right = place is None if named is None else isinstance(place, named)
    require(
        right,
        f"{task.name}: feature_map is {named and named.__name__}, but features() makes "
        f"{'none' if place is None else type(place).__name__}; name that class, so that model files can be read",
    )
    if place is None or model._coef is None:
        return
    f = model.decision_function(X)
    F = reference_mapped(model, X) if place.linear else f
    one = partial(reference_mapped, model) if place.linear else model.decision_function
    each = np.concatenate([one(row) for row in X[:, None]])
    scale = np.maximum(1.0, np.abs(each))
    require(
        F.shape == each.shape and float((np.abs(F - each) / scale).max()) <= CLOSE,
        f"{task.name}: {type(place).__name__}.{'features' if place.linear else 'scores'} of one row and of many rows "
        "differ; let them depend on that row and on the attributes alone",
    )
    own = F @ model._coef[0] + model.intercept_[0] if place.linear else f
    far = float((np.abs(own - f) / np.maximum(1.0, np.abs(f))).max())
    require(
        far <= CLOSE,
        f"{task.name}: the features and decision_function differ by {far:.2g}; scores() and rows() need to belong to "
        "features()",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        again = load_model_file(path, lambda kind, name: task)[0]
    require(
        np.array_equal(again.decision_function(X), f),
        f"{task.name}: a model from its file predicts something else; encoded() needs to hold all that features() uses",
    )


def check_sparse_rows(objective: Any) -> None:
    """Check that CSR rows make the model of the same dense rows, or are refused in words."""
    for settings in reference_kernels(objective):
        X, y, counts = reference_sample(objective)
        dense, S = reference_fit(objective, X, y, sample_weight=counts, **settings), csr_matrix(X)
        told = f"{dense.objective}, {settings['kernel']} kernel, CSR rows: "
        try:
            sparse = reference_fit(objective, S, y, sample_weight=counts, **settings)
        except (TypeError, ValueError) as error:
            advice = "features.matrix() is dense or CSR; take both, or raise a ValueError that says 'dense'"
            require("dense" in str(error), f"{told}{type(error).__name__}: {error}; {advice}")
            continue
        require_close((sparse, S), (dense, X), f"{told}the same dense rows make another model")


CHECKS_OF_VALUES_BY_ROW = (check_certificate, check_perturbations, check_weights, check_row_order, check_engines_agree)
"""Checks that an objective passes once more with a value for each row, where it has settings that hold one."""
CHECKS: tuple[Callable[[Any], None], ...] = (
    check_declaration,
    check_composite,
    check_unknown_parameter,
    check_bounds,
    check_params,
    check_certificate,
    check_perturbations,
    check_weights,
    check_row_order,
    check_values_by_row,
    check_engines_agree,
    check_determinism,
    check_string_labels,
    check_precomputed,
    check_model,
    check_three_classes,
    check_features,
    check_sparse_rows,
)
"""All checks, in the order in which they run."""
