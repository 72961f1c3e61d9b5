"""Leave-one-out in closed form against m fits without a row each, and the other ways to leave rows out."""

import contextlib
import warnings
from typing import ClassVar

import numpy as np
import pytest
from reference import gram

import mdlearn
from mdlearn.forms.losses import HingeTerm
from mdlearn.margins import hessian_diagonal, loo_error_bound, lssvm_loo_margins, uldm_loo_margins
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen_seconds
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.selection.leave_one_out import closed_form
from mdlearn.selection.study import Study


def sample(m=20, d=3, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    place = X[:, 0] + 0.6 * rng.standard_normal(m)
    return X, np.digitize(place, np.linspace(-0.6, 0.6, classes - 1) if classes > 2 else [0.2])


def weights(m, seed=2):
    return np.random.default_rng(seed).integers(0, 4, m).astype(float)


def refitted(name, X, y, w, square=False, **params):
    """Decision values of every row of positive weight, each by a fit of its own."""
    out = []
    for i in range(len(y)):
        if w[i] == 0:
            out.append(None)
            continue
        left = np.array(w)
        left[i] -= 1
        given = {"kernel": "precomputed"} if square else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 1e-14 is below what rounding allows
            model = mdlearn.fit(name, X, y, sample_weight=left, tol=1e-14, **given, **params)
        out.append(model.decision_function(X[i : i + 1])[0])
    size = next(np.shape(one) for one in out if one is not None)
    return np.array([np.full(size, np.nan) if one is None else one for one in out])


def close(told, true, within=1e-9):
    scale = max(1.0, np.nanmax(np.abs(true)))
    np.testing.assert_allclose(told, true, rtol=0, atol=within * scale)


POINTS = {
    "lssvm": [{"C": 0.01}, {"C": 100.0}],
    "lsldm": [{"C": 1.0, "lambda1": 0.0, "lambda2": 3.0}, {"C": 0.0, "lambda1": 2.0, "lambda2": 1e3}, {"C": 2.0}],
}


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", ["free", "regularized", "none"])
@pytest.mark.parametrize("kernel", ["linear", "broad", "wide", "precomputed"])
@pytest.mark.parametrize("name", POINTS)
def test_least_squares_against_brute_force(name, kernel, bias, weighted):
    X, y = sample(16, {"broad": 24, "wide": 60}.get(kernel, 3))
    w = weights(16) if weighted else np.ones(16)
    square = kernel == "precomputed"
    if square:
        X = np.asarray(gram(X, X, "rbf", 0.5, dtype=np.float64))
    for params in POINTS[name]:
        given = {"kernel": "precomputed"} if square else {}
        weight = w if weighted else None
        told = mdlearn.cross_validate(name, X, y, cv="loo", bias=bias, sample_weight=weight, **given, **params)
        close(told.decision, refitted(name, X, y, w, square, bias=bias, **params))
        right = (told.decision >= 0) == (y == 1)
        assert told.scores == pytest.approx([np.average(right[w > 0], weights=w[w > 0])])
        assert told.folds == () and told.certificates == ()


@pytest.mark.slow
@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "fuzzy-min", "fuzzy-avg"])
@pytest.mark.parametrize("weighted", [False, True])
def test_several_classes_against_brute_force(multiclass, weighted):
    X, y = sample(24, classes=3)
    w = weights(24, seed=5) if weighted else np.ones(24)
    weight = w if weighted else None
    told = mdlearn.cross_validate("lsldm", X, y, cv="loo", multiclass=multiclass, sample_weight=weight, tol=1e-12)
    close(told.decision, refitted("lsldm", X, y, w, multiclass=multiclass))
    kept = w > 0
    assert told.scores == pytest.approx([np.average((told.decision.argmax(axis=1) == y)[kept], weights=w[kept])])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [1e-6, 1e-3, 0.1])
def test_uldm_keeps_its_basis(C, weighted):
    X, y = sample(14)
    w = weights(14) if weighted else np.ones(14)
    weight = w if weighted else None
    G = np.asarray(gram(X, X, "rbf", 0.5, dtype=np.float64))
    told = mdlearn.cross_validate("uldm", G, y, cv="loo", kernel="precomputed", C=C, sample_weight=weight)
    # The columns of all rows, given as rows of their own: leaving a row out leaves them as they are.
    columns = (np.sqrt(w) * G)[:, w > 0]
    close(told.decision, refitted("uldm", columns, y, w, C=C, basis="euclidean"), 1e-9 if C > 1e-5 else 1e-8)
    close(
        told.decision[w > 0],
        (np.where(y == 1, 1, -1) * uldm_loo_margins(np.hstack([columns, np.ones((14, 1))]), y, C, sample_weight=w)[0])[
            w > 0
        ],
    )


class Averaged(mdlearn.Objective):
    """A squared loss that is averaged, so that its weight in the sum changes with the number of rows."""

    name = "averaged"
    summary = "for tests"
    formula = "see the class"
    parameters: ClassVar = {"c": Parameter(20.0, "weight of the mean loss"), "v": Parameter(3.0, "of the variance")}

    def terms(self, params, total):
        loss = tuple(HingeTerm(params["c"] / total, side, 0.5, power=2) for side in (1, -1))
        return Terms(variance=params["v"], mean=0.7, loss=loss)


class Scaled(Averaged):
    """The same with a default that depends on the number of rows: the closed form does not apply, paths do."""

    name = "scaled"
    parameters: ClassVar = {**Averaged.parameters, "v": Parameter(lambda params, m: m / 8.0, "of the variance")}


@pytest.mark.parametrize("objective, closed", [(Averaged, True), (Scaled, False)])
def test_objectives_of_plugins_are_known_by_their_form(objective, closed):
    X, y = sample(14)
    w = weights(14, seed=8)
    told = mdlearn.cross_validate(objective, X, y, cv="loo", sample_weight=w, tol=1e-13)
    close(told.decision, refitted(objective, X, y, w), 1e-9 if closed else 1e-5)
    assert told.certificates == ()


def test_the_known_formula_of_lssvm():
    X, y = sample(30)
    told = mdlearn.cross_validate("lssvm", X, y, cv="loo", kernel="rbf", gamma=0.5, C=3.0)
    G = np.asarray(gram(X, X, "rbf", 0.5, dtype=np.float64))
    close(told.decision * np.where(y == 1, 1, -1), lssvm_loo_margins(G, y, 3.0)[0], 1e-11)


@pytest.mark.parametrize("name, params", [("lsldm", {}), ("uldm", {"multiclass": "ovr"}), ("svm", {"tol": 1e-11})])
def test_integer_weights_are_repeated_rows(name, params):
    X, y = sample(18)
    w = np.random.default_rng(4).integers(1, 4, 18)
    many = np.repeat(np.arange(18), w)
    one = mdlearn.cross_validate(name, X, y, cv="loo", kernel="rbf", gamma=0.5, sample_weight=w, **params)
    other = mdlearn.cross_validate(name, X[many], y[many], cv="loo", kernel="rbf", gamma=0.5, **params)
    close(one.decision[many], other.decision, 1e-8 if name != "svm" else 1e-4)
    assert one.scores == pytest.approx(other.scores, rel=1e-13)


@pytest.mark.parametrize("name, kernel, solver", [("svm", "rbf", "cd"), ("ldm", "linear", "interior")])
def test_a_named_engine_fits_without_each_row(name, kernel, solver):
    X, y = sample(15)
    w = weights(15, seed=3)
    given = {"kernel": "rbf", "gamma": 0.7} if kernel == "rbf" else {}
    told = mdlearn.cross_validate(name, X, y, cv="loo", sample_weight=w, tol=1e-11, solver=solver, **given)
    close(told.decision, refitted(name, X, y, w, **given), 1e-4)
    assert len(told.certificates) == np.count_nonzero(w) and all(one.converged for one in told.certificates)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("value", [0.0, 1.0, 1e5 / 3])
def test_rows_that_are_all_the_same(kernel, value):
    """Nothing is left when they are centred: the intercept is the mean of the other labels."""
    _, y = sample(12)
    w = np.random.default_rng(1).integers(1, 4, 12)
    X, s = np.full((12, 2), value), np.where(y == 1, 1.0, -1.0)
    told = mdlearn.cross_validate("lssvm", X, y, cv="loo", kernel=kernel, C=30.0, sample_weight=w)
    close(told.decision, (w @ s - s) / (w.sum() - 1))


def test_class_weights_follow_the_smaller_sample():
    X, y = sample(15)
    told = mdlearn.cross_validate("lssvm", X, y, cv="loo", class_weight="balanced", tol=1e-12)
    close(told.decision, refitted("lssvm", X, y, np.ones(15), class_weight="balanced"), 1e-6)


def test_a_grid_gives_the_scores_of_its_points():
    X, y = sample(25)
    grid = {"C": [0.0, 0.1, 10.0], "lambda1": [0.5, 2.0], "lambda2": [0.0, 4.0]}
    found = mdlearn.select("lsldm", X, y, grid, cv="loo", scoring="auc", bias="regularized")
    assert found.scores.shape == (12, 1)
    for point, score in zip(found.points, found.scores[:, 0]):
        alone = mdlearn.cross_validate("lsldm", X, y, cv="loo", scoring="auc", bias="regularized", **point)
        assert score == pytest.approx(alone.scores[0], rel=1e-12)


# ---------------------------------------------------------------- pseudo-leave-one-out


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_pseudo_loo_is_the_bound(bias):
    X, y = sample(20)
    w = np.random.default_rng(6).integers(0, 3, 20)
    grid = {"C": [0.5, 5.0], "lambda1": [0.0, 4.0]}
    given = {"sample_weight": w, "kernel": "rbf", "gamma": 0.5, "lambda2": 1.0, "bias": bias, "tol": 1e-12}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mdlearn.select("ldm", X, y, grid, cv="pseudo-loo", refit=False, **given)
        for point, score in zip(found.points, found.scores[:, 0]):
            model = mdlearn.fit("ldm", X, y, **given, **point)
            G = np.asarray(gram(X, X, "rbf", 0.5, dtype=np.float64)) + (bias == "regularized")
            diagonal = hessian_diagonal(G, y, point["lambda1"], w)
            assert score == pytest.approx(1 - loo_error_bound(model.duals[0], diagonal, point["C"], w), abs=1e-5)
    assert found.model is None


@pytest.mark.parametrize("C", [0.0, np.inf])
def test_the_bound_at_the_ends(C):
    X = np.vstack([np.random.default_rng(0).standard_normal((20, 2)) + 4, -4 * np.ones((3, 2))])
    y = np.arange(23) < 20
    told = mdlearn.cross_validate("ldm", X, y, cv="pseudo-loo", C=C, lambda1=1.0, lambda2=1.0)
    model = mdlearn.fit("ldm", X, y, C=C, lambda1=1.0, lambda2=1.0)
    diagonal = hessian_diagonal(X @ X.T + 1, y, 1.0)
    assert told.mean == pytest.approx(1 - loo_error_bound(model.duals[0], diagonal, C), abs=1e-4)


def test_without_distribution_the_bound_holds_for_leave_one_out():
    X, y = sample(30)
    for C in (0.05, 0.5):
        told = {
            cv: mdlearn.cross_validate("svm", X, y, cv=cv, C=C, bias="none", tol=1e-10) for cv in ("loo", "pseudo-loo")
        }
        assert told["loo"].mean >= told["pseudo-loo"].mean - 1e-9
        assert told["pseudo-loo"].decision is None


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "name, cv, params, match",
    [
        ("lssvm", "loo", {"sample_weight": np.full(20, 0.5)}, "row 0 has the weight 0.5"),
        ("lssvm", "loo", {"scoring": lambda model, X, y: 0.5}, "needs a named scoring"),
        ("ldm", "pseudo-loo", {"bias": "free"}, "free bias"),
        ("ldm", "pseudo-loo", {"scoring": "auc"}, "scoring is 'accuracy'"),
        ("lssvm", "pseudo-loo", {"bias": "none"}, "objective 'lssvm' is another"),
        ("l3svm", "pseudo-loo", {"loss": "squared_hinge"}, "is another"),
    ],
)
def test_errors(name, cv, params, match):
    X, y = sample()
    with pytest.raises(ValueError, match=match):
        mdlearn.cross_validate(name, X, y, cv=cv, **params)


def test_a_class_of_one_row_cannot_be_left_out():
    X, y = sample()
    y[:] = 0
    y[3] = 1
    with pytest.raises(ValueError, match="class 1 has one"):
        mdlearn.cross_validate("lssvm", X, y, cv="loo")
    y = np.arange(20) % 3
    with pytest.raises(ValueError, match="needs two classes"):
        mdlearn.cross_validate("ldm", X, y, cv="pseudo-loo")


def test_hopeless_numbers_of_fits_are_refused():
    X = np.random.default_rng(0).standard_normal((5000, 2))
    with pytest.raises(ValueError, match="25000 fits of 'svm'"):
        mdlearn.select("svm", X, X[:, 0] > 0, {"C": [1, 2, 3, 4, 5]}, cv="loo")


@pytest.mark.parametrize("seconds, scored", [(50.0, True), (200.0, False)])
def test_a_decomposition_that_would_not_end_in_time_is_not_begun(seconds, scored, monkeypatch, clock):
    """One call of LAPACK goes on whatever the time is."""
    monkeypatch.setattr(closed_form, "symmetric_eigen_seconds", lambda order: seconds)
    X = np.random.default_rng(0).standard_normal((30, 3))
    with contextlib.nullcontext() if scored else pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        found = mdlearn.cross_validate("lssvm", X, X[:, 0] > 0, cv="loo", kernel="rbf", time_limit=100.0)
    assert np.isfinite(found.scores).all() == scored


def test_points_after_the_deadline_have_no_score(clock, monkeypatch):
    """All points of a grid come from one decomposition, but their scores take time as well."""
    score = Study.score
    monkeypatch.setattr(Study, "score", lambda self, *given: (clock.sleep(1.0), score(self, *given))[1])
    X = np.random.default_rng(0).standard_normal((30, 3))
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        found = mdlearn.select(
            "lssvm", X, X[:, 0] > 0, {"C": [0.1, 1.0, 10.0, 100.0]}, cv="loo", time_limit=1.5, refit=False
        )
    np.testing.assert_array_equal(np.isnan(found.mean_scores), [False, False, True, True])


def test_the_seconds_of_a_decomposition_grow_with_the_cube_of_its_order():
    assert (
        symmetric_eigen_seconds(2000) == pytest.approx(8.0 * symmetric_eigen_seconds(1000))
        and symmetric_eigen_seconds(1000) > 0.0
    )
