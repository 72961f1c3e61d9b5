"""An engine of a plugin may be wrong in any way: the fit says whose it is, no certificate is false, others go on."""

from __future__ import annotations

import re
import warnings
from textwrap import dedent, indent

import numpy as np
import pytest
from engine_cases import ENGINE, NONSENSE, iterate
from plugin_cases import Site
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn.plugins.registry import registry

X = np.random.default_rng(0).standard_normal((40, 3))
Y = np.where(X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(40) > 0, 1, 0)
Y3 = np.argmax(X, axis=1)
NAMED = "solver 'odd' of odd-engine 0.4"
NOTE = f"(raised in Odd.{{method}}: {NAMED}, hook mdlearn_solvers)"


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """From the body of an engine class to a function that fits with it."""
    site = Site(tmp_path, monkeypatch)

    def made(body, objective="svm", y=Y, solver="odd", rows=X, **settings):
        code = dedent(ENGINE).replace("{body}", indent(dedent(body), "    "))
        if "odd" not in registry().solvers:
            site.add("odd-engine", code, version="0.4")
        return mdlearn.fit(objective, rows, y, solver=solver, **settings)

    return made


@pytest.mark.parametrize("settings", [{}, {"y": Y3, "n_threads": 2}, {"y": Y3, "multiclass": "ovo"}])
@pytest.mark.parametrize("case", ["a number", "no point", "nan in beta"])
def test_nonsense_in_every_way_of_several_classes(case, settings, fit):
    yielded, kind, _ = NONSENSE[case]
    with pytest.raises(kind, match=f"^{re.escape(NAMED)} is faulty: .*; use another solver$"):
        fit(iterate(yielded), **settings)


@pytest.mark.parametrize("case", NONSENSE)
def test_what_makes_no_point_is_told(case, fit):
    yielded, kind, told = NONSENSE[case]
    with pytest.raises(kind) as raised:
        fit(iterate(yielded))
    assert str(raised.value) == f"{NAMED} is faulty: {told}; use another solver"
    assert mdlearn.fit("svm", X, Y).certificate.converged


@pytest.mark.parametrize(
    ("point", "told"),
    [
        ("Point(beta, sigma)", "it yielded Point as a point, a CompositePoint is needed"),
        (
            "CompositePoint(w)",
            "its point has as W an array of float64 and shape (3,), floats of shape (3, 1) are needed",
        ),
        ("CompositePoint(w[:, None] / 0.0)", "its point has NaN or infinity in W"),
        (
            "CompositePoint(w[:, None], w)",
            "its point has as anchor an array of float64 and shape (3,), floats of shape (3, 1) are needed",
        ),
    ],
)
def test_points_of_a_composite(point, told, fit):
    taking = "\ndef refusal(self, form):\n    return None\n"
    body = dedent(iterate(f"Report(1.0, 0.0, {point})")) + taking
    with pytest.raises(ValueError) as raised, np.errstate(all="ignore"):
        fit(body, "mdlm", beta=0.1, bias="none")
    assert str(raised.value) == f"{NAMED} is faulty: {told}; use another solver"


NO_GENERATORS = {
    "iterate": "its iterate returned list, a generator is needed",
    "prepare": "its prepare returned NoneType, a generator is needed",
}


@pytest.mark.parametrize("settings", [{}, {"y": Y3, "multiclass": "ovo"}])
@pytest.mark.parametrize("method", NO_GENERATORS)
def test_what_is_no_generator(method, settings, fit):
    with pytest.raises(TypeError) as raised:
        fit(f"def {method}(self, *given):\n    return {'[3]' if method == 'iterate' else None}", **settings)
    assert str(raised.value) == f"{NAMED} is faulty: {NO_GENERATORS[method]}; use another solver"


@pytest.mark.parametrize("settings", [{}, {"y": Y3, "n_threads": 2}, {"y": Y3, "multiclass": "ovo"}])
@pytest.mark.parametrize(
    "body",
    [
        "def refusal(self, form):\n    raise KeyError('inside')",
        "def prepare(self, *given):\n    raise KeyError('inside')",
        "def prepare(self, *given):\n    yield None\n    raise KeyError('inside')",
        "def iterate(self, *given):\n    raise KeyError('inside')",
        "def iterate(self, *given):\n    yield None\n    raise KeyError('inside')",
        "def iterate(self, *g):\n    yield next(filter(None, super().iterate(*g)))\n    raise KeyError('inside')",
    ],
)
def test_an_error_inside_comes_through_with_a_note(body, settings, fit):
    with pytest.raises(KeyError) as raised:
        fit(body, **settings)
    method = body.split("(")[0].removeprefix("def ")
    assert raised.value.args == ("inside",) and raised.value.__notes__ == [NOTE.format(method=method)]


def test_errors_of_built_in_engines_and_of_callbacks_have_no_note(fit):
    def callback(state):
        raise KeyError("the user's")

    for solver in ("odd", "interior"):
        with pytest.raises(KeyError) as raised:
            fit("pass", solver=solver, callback=callback)
        assert not hasattr(raised.value, "__notes__")
    rows = np.vstack([X, X])
    with pytest.raises(ValueError, match="separable") as raised:  # found in what the engine hands in, not inside it
        mdlearn.fit("svm", rows, np.repeat([0, 1], 40), C=np.inf, bias="none", solver="odd")
    assert not hasattr(raised.value, "__notes__")


def test_a_class_that_no_plugin_brings_has_no_distribution():
    class Own(registry().solvers["interior"]):
        name = "own"

        def iterate(self, *given):
            yield 3

    with pytest.raises(TypeError) as raised:
        mdlearn.fit("svm", X, Y, solver=Own)
    assert str(raised.value).startswith("solver 'own' is faulty: it yielded int")


@pytest.mark.parametrize("body", ["raise KeyError('inside')", "return 1 / 0", "return False", "exit()"])
def test_a_faulty_refusal_harms_no_other_name(body, fit):
    refusing = f"def refusal(self, form):\n    {body}"
    told = r"^solver 'linprog' cannot take this problem: .*; use one of asgd, cd, hybrid, interior, sgd$"
    with pytest.raises(ValueError, match=told):
        fit(refusing, solver="linprog")
    assert fit(refusing, solver="auto").certificate.converged


@pytest.mark.parametrize("returned", [False, 3])
def test_a_refusal_that_is_no_text(returned, fit):
    with pytest.raises(TypeError) as raised:
        fit(f"def refusal(self, form):\n    return {returned}")
    told = f"its refusal returned {returned!r}, a text or None is needed"
    assert str(raised.value) == f"{NAMED} is faulty: {told}; use another solver"


# ---------------------------------------------------------------- certificates stay true


def true_objective(model, C):
    """The objective of svm at the model's coefficients, outside of mdlearn."""
    z = np.where(Y == 1, 1.0, -1.0) * (X @ model.coef_[0] + model.intercept_[0])
    return 0.5 * (model.coef_[0] @ model.coef_[0] + model.intercept_[0] ** 2) + C * np.maximum(0.0, 1.0 - z).sum()


def check_true(model, C=1.0):
    optimum = mdlearn.fit("svm", X, Y, C=C, tol=1e-12).certificate.objective
    proof = model.certificate
    assert proof.objective == pytest.approx(true_objective(model, C), rel=1e-12)
    assert proof.lower_bound <= optimum * (1.0 + 1e-10) <= proof.objective * (1.0 + 2e-10)
    assert proof.converged == (proof.gap <= proof.tol)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("settings", [{}, {"y": Y3, "n_threads": 2}, {"y": Y3, "multiclass": "ovo"}])
def test_no_report_at_all(ends, settings, fit):
    body = f"def iterate(self, *given):\n    yield None\n\ndef ends_itself(self, options):\n    return {ends}"
    with pytest.warns(mdlearn.ConvergenceWarning) as caught:
        model = fit(body, **settings)
    told = f"^{re.escape(NAMED)} stopped at relative gap .* \\(it handed in no point\\); use another solver$"
    assert [bool(re.match(told, str(one.message))) for one in caught] == [True]
    assert not model.coef_.any() and not model.certificate.converged
    if not settings:
        check_true(model)


LIES = {
    "a gap of 0": "Report(1.0, 1.0, Point(beta, sigma, w))",
    "a bound above everything": "Report(1.0, float('inf'), Point(beta, sigma, w))",
    "multipliers out of their box": "Report(1.0, 1.0, Point(beta + 1e6, sigma, w))",
    "negative multipliers": "Report(1.0, 1.0, Point(beta - 1e6, sigma))",
    "multipliers of the variance": "Report(1.0, 1.0, Point(beta, sigma + np.arange(m), w))",
    "long coefficients": "Report(1.0, 1.0, Point(beta, sigma, w + 1e3))",
    "foreign alpha": "Report(1.0, 1.0, Point(beta, sigma, w, 0.0, sigma + 1.0))",
}


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_not_certified(lie, ends, fit):
    body = dedent(iterate(LIES[lie])) + f"\ndef ends_itself(self, options):\n    return {ends}\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        check_true(fit(body, tol=1e-6))


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(
    ("objective", "point"), [("svm", "Point(beta, sigma, w)"), ("mdlm", "CompositePoint(w[:, None])")]
)
def test_one_array_for_the_points_of_all_classes(objective, point, ends, fit):
    body = f"""
        def refusal(self, form):
            return None

        def ends_itself(self, options):
            return {ends}

        def prepare(self, form, options):
            yield None
            return np.zeros(form.features.width)

        def iterate(self, form, column, shared, options, rng):
            beta, sigma, w = np.zeros((1, form.features.n_rows)), np.zeros(form.features.n_rows), shared
            w[:] = 0.01 * (column.y if hasattr(column, "y") else column.columns[0].y) @ form.features.matrix()
            yield Report(1.0, 0.0, {point})
    """
    given = {"bias": "none", "multiclass": "ovr", **({"beta": 0.1} if objective == "mdlm" else {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        together = fit(body, objective, Y3, **given)
        for k, part in enumerate(together.certificate.parts):
            alone = fit(body, objective, Y3 == k, **given)
            np.testing.assert_array_equal(together.coef_[k], alone.coef_[0])
            assert part == alone.certificate


@pytest.mark.parametrize("rows", ["dense", "sparse", "kernel"])
@pytest.mark.parametrize(
    "target",
    ["column.y", "column.counts", "column.caps", "column.pull", "column.thresholds", "column.sides", "matrix"],
)
def test_an_engine_cannot_write_into_what_its_work_is_judged_by(target, rows, fit):
    matrices = {
        "dense": "form.features.matrix()",
        "sparse": "form.features.rows.matrix().data",
        "kernel": "(yield from form.features.gram())",
    }
    before, given = X.copy(), csr_matrix(X) if rows == "sparse" else X
    body = iterate("None", f"array = {matrices[rows] if target == 'matrix' else target}; array *= 0.5")
    with pytest.raises(ValueError, match="read-only") as raised:
        fit(body, objective="ldm", rows=given, kernel="rbf" if rows == "kernel" else "linear")
    assert raised.value.__notes__ == [NOTE.format(method="iterate")]
    np.testing.assert_array_equal(given.toarray() if rows == "sparse" else given, before)
    assert (given.data if rows == "sparse" else given).flags.writeable
