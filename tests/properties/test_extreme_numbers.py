"""Finite numbers of any size end in a model with a true certificate or in one sentence, never in a warning.

What is not refused is fitted, and its model predicts or says which row it cannot predict.
"""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import pytest
from plugin_cases import Site
from scipy import sparse

import mdlearn
from mdlearn.objectives.svm import SVM

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 3)), np.arange(12) % 2


@pytest.fixture(autouse=True)
def no_warning_of_numpy():
    """What a user would see is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        yield


# ---------------------------------------------------------------- found by searching


@pytest.mark.parametrize("multiclass", ["ovo", "fuzzy-min"])
@pytest.mark.parametrize("solver", ["asgd", "sgd"])
def test_an_engine_is_asked_about_every_pair_of_classes(solver, multiclass, rng):
    """A pair of one row each has the kernel columns of its rows in the place of columns, and these engines no way."""
    rows, labels = rng.standard_normal((5, 3)), [0, 0, 0, 1, 2]
    with pytest.raises(ValueError, match=rf"^solver '{solver}' cannot take this problem: its steps .*; use one of "):
        mdlearn.fit("uldm", rows, labels, solver=solver, multiclass=multiclass)


def test_terms_that_are_none():
    class Forgetful(SVM):
        name = "forgetful"

        def terms(self, params, total):
            super().terms(params, total)

    sentence = "^objective 'forgetful' is faulty: Forgetful.terms returned NoneType, Terms are needed$"
    with pytest.raises(TypeError, match=sentence):
        mdlearn.fit(Forgetful, X, Y)
    with pytest.raises(TypeError, match=sentence):
        mdlearn.fit(Forgetful, [(X, Y)], None)


@pytest.mark.parametrize(
    ("objective", "given", "told"),
    [
        ("mmlr", {"lam": 1e-300}, r"objective 'mmlr' with alpha=5, lam=1e-300 and rows of weight 1.2e-30 has terms"),
        ("mdlm", {"ridge": 1e-300}, r"objective 'mdlm' with .*ridge=1e-300 and rows of weight 1.2e-30 has terms"),
        ("svm", {"C": 1e300, "scale": 1e40}, r"objective 'svm' with C=1e\+300 and rows of weight 1.2e\+10 has terms"),
    ],
)
def test_weights_beyond_float64_name_the_parameters(objective, given, told):
    weight = np.full(12, 1e-31 * given.pop("scale", 1.0))
    with pytest.raises(ValueError, match=told + " whose weights are beyond the range of float64; give parameters"):
        mdlearn.fit(objective, X, Y, sample_weight=weight, **given)


def test_gamma_beyond_all_distances():
    model = mdlearn.fit("lssvm", X, Y, kernel="rbf", gamma=1e200)
    assert model.certificate.converged
    np.testing.assert_array_equal(model.predict(X), Y)


def test_decision_values_that_overflow_name_their_row():
    far = X.copy()
    far[7] *= 1e100
    model = mdlearn.fit("svm", X, Y, kernel="poly", degree=9)
    with pytest.raises(ValueError, match=r"^the decision values of row 7 overflow; scale the features$"):
        model.predict(far)


def test_coefficients_beyond_float32():
    narrow = (1e-30 * X).astype(np.float32)
    model = mdlearn.fit("l3svm", narrow, Y, n_clusters=1, n_landmarks=1, C=1e120)
    assert model.folded_coef_.dtype == np.float32 and np.isfinite(model.folded_coef_).all()


def test_the_bound_of_a_kernel_that_overflows():
    with pytest.raises(ValueError, match=r"^G times lambda1=1e\+300 is too large for float64; scale the kernel, or"):
        mdlearn.margins.hessian_diagonal(1e30 * X @ X.T, Y, 1e300)


def test_joint_machine_over_an_approximate_kernel():
    """Its contrasts kept no map, so that predictions met rows as they were given."""
    labels = np.arange(12) % 3
    settings = {"kernel": "rbf", "approximation": "nystroem", "n_components": 5}
    model = mdlearn.fit("ww", X, labels, bias="none", **settings)
    assert model.coef_.shape == (3, 5) and model.certificate.converged
    z = model.margins(X, labels)
    assert model.decision_function(X).shape == (12, 3) and z.shape == (12,)
    f, own = model.decision_function(X), np.arange(12)
    losses = np.maximum(0.0, 2.0 - (f[own, labels][:, None] - f)).sum() - 2.0 * 12
    assert 0.5 * np.square(model.coef_).sum() + losses == pytest.approx(model.certificate.objective, rel=1e-6)


def test_callable_kernel_on_landmarks():
    model = mdlearn.fit("l3svm", X, Y, kernel=lambda A, B: A @ B.T + 1.0, n_clusters=2, membership="soft")
    assert model.certificate.converged


def test_columns_and_weights_near_the_smallest_number():
    tiny = X.copy()
    tiny[:, 1] *= 1e-310
    assert mdlearn.fit("rlp", tiny, Y).certificate.objective <= 1.0
    assert mdlearn.fit(
        "svm", X, Y, kernel="rbf", bias="free", C=1e-300, sample_weight=np.full(12, 1e-20)
    ).n_features_in_


@pytest.mark.parametrize("error", ["ZeroDivisionError('by zero')", "np.linalg.LinAlgError('singular')"])
def test_arithmetic_that_ends_an_engine(error, tmp_path, monkeypatch):
    """The best point so far is the answer; the warning says what happened."""
    code = f"""
        import mdlearn
        import numpy as np
        from mdlearn.forms.margin import Point
        from mdlearn.solvers.base import Report, Solver

        class Broken(Solver):
            name, purpose = "broken", "breaks"

            def iterate(self, form, column, shared, options, rng):
                m = column.y.shape[0]
                yield Report(1.0, 0.0, Point(np.full((1, m), 1e-3), np.zeros(m)))
                raise {error}

        @mdlearn.hookimpl
        def mdlearn_solvers():
            return [Broken]
    """
    Site(tmp_path, monkeypatch).add("broken-engine", code)
    told = rf"stopped at relative gap .* \(ended by {error.split('(')[0].split('.')[-1]}: .*\); use another solver$"
    with pytest.warns(mdlearn.ConvergenceWarning, match=told):
        model = mdlearn.fit("svm", X, Y, solver="broken")
    optimum = mdlearn.fit("svm", X, Y, tol=1e-12).certificate.objective
    assert model.certificate.lower_bound <= optimum * (1 + 1e-9) <= model.certificate.objective * (1 + 2e-9)


def test_row_blocks_of_any_size():
    """Passes overflow without a warning, and a matrix that is singular to rounding ends the steps, not the fit."""
    rows = np.float32([[1e12], [-1e12], [1e12], [3e11]])
    labels = np.array([0, 1, 0, 1])
    for objective in ("mdlm", "svm", "lssvm", "l2lr"):
        for scale in (1e-30, 1.0, 1e20):
            model = mdlearn.fit(objective, [(rows * np.float32(scale), labels)], None, bias="regularized")
            assert model.certificate.lower_bound <= model.certificate.objective
    model = mdlearn.fit("mlr", [(X, Y)], None, alpha=1e300)
    assert model.certificate.lower_bound <= model.certificate.objective


def test_portions_of_any_size():
    pytest.importorskip("sklearn")
    from mdlearn.sklearn import LandmarkTransformer, MarginClassifier

    stream = MarginClassifier("ldm", solver="sgd", bias="none")
    assert np.isfinite(stream.partial_fit((1e-30 * X).astype(np.float32), Y, classes=[0, 1]).coef_).all()
    nothing = MarginClassifier("svm", solver="sgd", params={"C": 1e-300}, bias="none")
    assert not nothing.partial_fit(0 * X, Y, classes=[0, 1]).coef_.any()
    with pytest.raises(ValueError, match=r"^projections of X overflow float32; scale the columns of X$"):
        LandmarkTransformer(n_landmarks=2).fit_transform((1e25 * X).astype(np.float32))


def test_statistics_and_approximations_that_overflow():
    assert mdlearn.margins.variance([1e200, -1e200]) == np.inf
    with pytest.raises(ValueError, match=r"^values of kernel 'poly' overflow; scale the features$"):
        mdlearn.fit("svm", X, Y, kernel="poly", gamma=1e179, approximation="nystroem", n_components=3)


# ---------------------------------------------------------------- a search

OBJECTIVES = mdlearn.list_objectives()
SOLVERS = ["auto"] * 9 + list(mdlearn.list_solvers())


def awkward(rng):
    """Rows, labels and weights, of any size that is finite."""
    k = int(rng.choice([2, 2, 3]))
    m, d = int(rng.choice([k, k + 1, rng.integers(k, 30)])), int(rng.integers(1, 6))
    rows = rng.standard_normal((m, d))
    for step in rng.integers(0, 9, 2):
        rows = [
            lambda A: A * 10.0 ** rng.integers(-300, 140),
            lambda A: A * 10.0 ** rng.integers(-60, 60, d),
            lambda A: A * 10.0 ** rng.integers(-12, 12, (m, 1)),
            lambda A: np.repeat(A[:1], m, axis=0),
            lambda A: np.where(rng.random((m, 1)) < 0.5, 0.0, A),
            lambda A: A[rng.integers(0, m, m)],
            lambda A: A + 10.0 ** rng.integers(0, 12),
            lambda A: np.round(A),
            lambda A: A * np.where(np.arange(d) == 0, 0.0, 1.0),
        ][step](rows)
    labels = np.r_[np.arange(k), rng.integers(0, k, m - k) * rng.integers(0, 2)]
    weight = [None, rng.integers(0, 3, m), 10.0 ** rng.integers(-12, 12, m), np.full(m, 1e-150)][rng.integers(4)]
    return rows, labels, weight


def refused(error):
    """Whether it was raised by a sentence of ours."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "mdlearn" in last.filename and (last.line or "").startswith("raise")


@pytest.mark.parametrize("seed", range(60))
def test_any_finite_input(seed):
    rng = np.random.default_rng([24, seed])
    rows, labels, weight = awkward(rng)
    given = {"kernel": str(rng.choice(["linear", "linear", "rbf", "poly", "precomputed"])), "time_limit": 5.0}
    with np.errstate(all="ignore"):
        rows = rows @ rows.T if given["kernel"] == "precomputed" else rows
        if not np.abs(rows).max() <= 1e300:
            rows = np.clip(np.nan_to_num(rows), -1e100, 1e100)
        rows = [rows, rows.astype(np.float32), sparse.csr_matrix(rows)][rng.integers(3)]
    given["solver"], objective = str(rng.choice(SOLVERS)), str(rng.choice(OBJECTIVES))
    if rng.random() < 0.6:
        given["bias"] = str(rng.choice(["none", "regularized", "free"]))
    if rng.random() < 0.4:
        given["multiclass"] = str(rng.choice(["ovr", "ovo", "joint", "fuzzy-min", "fuzzy-avg"]))
    try:
        model = mdlearn.fit(objective, rows, labels, sample_weight=weight, **given)
        model.margins(rows, labels[: rows.shape[0]], normalized=True) if model.classes_.shape[0] > labels.max() else 0
        model.predict(rows)
    except (ValueError, TypeError) as error:
        assert refused(error), traceback.format_exc()
    else:
        assert model.certificate.lower_bound <= model.certificate.objective
