"""Kernels that plugins bring: the hook, their parameters, and what is refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from kernel_cases import LAPLACE, bringing, sample
from plugin_cases import HOOKS, Site
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist

import mdlearn
from mdlearn.cli import main
from mdlearn.data.features import kernels
from mdlearn.data.features.kernels import PARAMETERS
from mdlearn.plugins.discovery import DISABLE
from mdlearn.plugins.records import PluginRecord
from mdlearn.plugins.registry import find, registry


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def laplace(A, B, width):
    return np.exp(-cdist(A, B, "cityblock") / width)


@pytest.mark.parametrize("objective", ["svm", "ldm", "lssvm", "uldm"])
def test_it_is_the_kernel_that_its_values_are(site, objective):
    site.add("laplace-kernel", LAPLACE)
    X, y = sample()
    model = mdlearn.fit(objective, X, y, kernel="laplace", width=2.0, tol=1e-12)
    given = mdlearn.fit(objective, laplace(X, X, 2.0), y, kernel="precomputed", tol=1e-12)
    assert model.kernel.name == "laplace" and model.params["width"] == 2.0 and model.certificate.converged
    assert model.certificate.objective == pytest.approx(given.certificate.objective, rel=1e-11)
    Z = X[:9] + 0.1
    expected = given.decision_function(laplace(Z, X, 2.0))
    np.testing.assert_allclose(model.decision_function(Z), expected, atol=1e-7)
    by_default = mdlearn.fit(objective, X, y, kernel="laplace")
    assert by_default.params["width"] == 1.0


def test_defaults_follow_the_rules_of_parameters(site):
    body = 'parameters = {"scale": Parameter(2.0, ""), "size": Parameter(lambda params, m: m * params["scale"], "")}'
    site.add("odd-kernel", bringing(body))
    X, y = sample(20)
    weight = np.tile([1, 2], 10)
    assert mdlearn.fit("svm", X, y, kernel="odd", sample_weight=weight).params["size"] == 60.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_get_dense_blocks_of_float64(site, monkeypatch, dtype):
    seen = []
    monkeypatch.setattr(mdlearn, "seen", seen, raising=False)
    site.add("odd-kernel", bringing(before="def look(A):\n    mdlearn.seen.append((type(A), A.dtype, A.shape))"))
    (site.folder / "odd_kernel.py").write_text(
        (site.folder / "odd_kernel.py").read_text().replace("return A @", "look(A), look(B); return A @")
    )
    monkeypatch.setattr(kernels, "BLOCK_ENTRIES", 30)
    X, y = sample()
    X = X.astype(dtype)
    sparse = mdlearn.fit("svm", csr_matrix(X), y, kernel="odd", tol=1e-8)
    dense = mdlearn.fit("svm", X, y, kernel="odd", tol=1e-8)
    linear = mdlearn.fit("svm", X, y, tol=1e-8)
    for model in (sparse, dense):
        for rows in (X, csr_matrix(X)):
            np.testing.assert_allclose(model.decision_function(rows), linear.decision_function(X), atol=1e-3)
    assert {(kind, kept) for kind, kept, _ in seen} == {(np.ndarray, np.dtype(np.float64))}
    assert max(rows * columns for *_, (rows, columns) in seen) <= 30


def test_l3svm_takes_it_on_the_landmark_space(site):
    site.add("laplace-kernel", LAPLACE)
    X, y = sample()
    model = mdlearn.fit("l3svm", X, y, kernel="laplace", width=2.0, n_clusters=2)
    assert model.certificate.converged and model.params["width"] == 2.0
    assert (model.predict(X) == y).mean() > 0.8


# ---------------------------------------------------------------- names and parameters


def test_listings(site, capsys):
    site.add("laplace-kernel", LAPLACE)
    assert mdlearn.list_kernels() == sorted([*PARAMETERS, "laplace"])
    assert mdlearn.list_plugins() == [PluginRecord("laplace-kernel", "1.0", "main", kernels=("laplace",))]
    assert main(["plugins"]) == 0 and main(["plugins", "--json"]) == 0
    line, told = capsys.readouterr().out.split("\n", 1)
    assert line == "laplace-kernel 1.0: kernels laplace; ok"
    assert json.loads(told)[0]["kernels"] == ["laplace"]
    assert main(["kernels"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "linear: a . b",
        "rbf: exp(-gamma |a - b|^2)",
        "    gamma (default scale)",
        "poly: (gamma a . b + coef0)^degree",
        "    gamma (default scale), degree (default 3), coef0 (default 0.0)",
        "precomputed: the kernel matrix is given as X",
        "laplace: exp(-|a - b|_1 / width)",
        "    width: length over which it falls (default 1)",
    ]


def test_unknown_names(site):
    site.add("laplace-kernel", LAPLACE)
    site.add("bad-kernel", "1 / 0")
    X, y = sample()
    with pytest.warns(mdlearn.PluginWarning), pytest.raises(ValueError) as raised:
        mdlearn.fit("svm", X, y, kernel="gauss")
    assert str(raised.value) == (
        "kernel 'gauss' is unknown; known kernels: linear, rbf, poly, precomputed, laplace or a callable k(A, B); "
        "plugins with something missing: bad-kernel 1.0 (entry main): import failed: ZeroDivisionError: division by "
        "zero"
    )
    for wrong in (3, None, registry().kernels["laplace"], registry().kernels["laplace"]()):
        with pytest.raises(TypeError, match=r"^kernel needs to be a name \(linear, rbf, .*laplace\), or a callable k"):
            mdlearn.fit("svm", X, y, kernel=wrong)
    assert find("kernel", "rbf") == "rbf" and find("kernel", laplace) is laplace


def test_parameters_are_checked(site):
    site.add("laplace-kernel", LAPLACE)
    X, y = sample()
    for given, kind, told in (
        ({"width": 0.0}, ValueError, "^width needs to be"),
        ({"width": "wide"}, TypeError, "^width needs to be"),
        ({"gamma": 1.0}, ValueError, "^objective 'svm' has no parameter 'gamma' here; valid: C, width, approx"),
    ):
        with pytest.raises(kind, match=told):
            mdlearn.fit("svm", X, y, kernel="laplace", **given)
    with pytest.raises(ValueError, match="has no parameter 'width' here"):
        mdlearn.fit("svm", X, y, kernel="rbf", width=1.0)
    with pytest.raises(ValueError, match=r"^objective 'mdlm' is linear; got kernel='laplace', give kernel='linear'$"):
        mdlearn.fit("mdlm", X, y, kernel="laplace")


def test_a_parameter_of_the_objective_as_well(site):
    site.add("odd-kernel", bringing('parameters = {"nu": Parameter(1.0, "")}'))
    X, y = sample()
    for given in ({}, {"nu": 1.0}):
        with pytest.raises(ValueError) as raised:
            mdlearn.fit("lsvm", X, y, kernel="odd", **given)
        assert str(raised.value) == (
            "kernel 'odd' and objective 'lsvm' both have a parameter 'nu'; use another kernel or another objective"
        )
    assert mdlearn.fit("svm", X, y, kernel="odd", nu=2.0).params["nu"] == 2.0


def test_a_kernel_may_have_a_gamma_of_its_own(site):
    site.add("odd-kernel", bringing('parameters = {"gamma": Parameter(0.5, "")}'))
    X, y = sample()
    assert mdlearn.fit("svm", X, y, kernel="odd", gamma=3).params["gamma"] == 3.0


FAULTS = {
    "built-in name": (
        bringing(name="rbf"),
        "the kernel name 'rbf' is built in; upgrade the plugin, or give yours another name",
    ),
    "no matrix": (
        bringing(name="precomputed"),
        "the kernel name 'precomputed' is built in; upgrade the plugin, or give yours another name",
    ),
    "callable": (
        bringing(name="callable"),
        "kernel class Odd is named 'callable', which stands for a function k(A, B)",
    ),
    "invalid name": (
        bringing(name="My Kernel"),
        "kernel class Odd is named 'My Kernel'; a name needs lower-case letters, digits, '_' and '-', a letter first",
    ),
    "another class": (
        bringing(cls="Odd"),
        "hook mdlearn_kernels returned <class 'bad_kernel.Odd'>, which is no subclass of mdlearn.KernelFunction",
    ),
    "no list": (
        bringing().replace("[Odd]", "Odd"),
        "hook mdlearn_kernels returned <class 'bad_kernel.Odd'>; it needs to return a list of subclasses of "
        "mdlearn.KernelFunction",
    ),
    "raising hook": (
        bringing().replace("[Odd]", "[1 / 0]"),
        "hook mdlearn_kernels failed: ZeroDivisionError: division by zero",
    ),
    "misspelt hook": (
        bringing().replace("mdlearn_kernels", "mdlearn_kernel"),
        f"hook 'mdlearn_kernel' does not exist; known hooks: {HOOKS}",
    ),
    "summary": (bringing("summary = 3"), "kernel class Odd needs a text as summary"),
    "settings": (
        bringing("parameters = {'size': Setting('large', '', str)}"),
        "kernel class Odd needs parameters that map names to Parameter",
    ),
    "a name of fit": (
        bringing("parameters = {'tol': Parameter(1.0, '')}"),
        "kernel class Odd declares ['tol'], which are names of fit's own arguments",
    ),
    "arguments": (
        bringing("def __init__(self, width):\n    pass"),
        "kernel class Odd cannot be made without arguments (TypeError: Odd.__init__() missing 1 required positional "
        "argument: 'width')",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_refused(site, case):
    code, fault = FAULTS[case]
    site.add("laplace-kernel", LAPLACE)
    site.add("bad-kernel", code)
    with pytest.warns(mdlearn.PluginWarning) as caught:
        assert mdlearn.list_kernels() == sorted([*PARAMETERS, "laplace"])
    assert [str(one.message) for one in caught] == [f"plugin bad-kernel 1.0 (entry main): {fault}"]
    assert mdlearn.list_plugins()[0] == PluginRecord("bad-kernel", "1.0", "main", state="error", error=fault)


def test_a_name_of_two_plugins(site):
    for name in ("a-kernel", "b-kernel"):
        site.add(name, bringing())
    told = (
        "kernel 'odd' is offered by a-kernel 1.0 (entry main) and by b-kernel 1.0 (entry main); uninstall all but one, "
        f"or disable them by name in {DISABLE}"
    )
    with pytest.warns(mdlearn.PluginWarning):
        assert mdlearn.list_kernels() == sorted(PARAMETERS)
    X, y = sample()
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        mdlearn.fit("svm", X, y, kernel="odd")
    assert {one.state for one in mdlearn.list_plugins()} == {"conflict"}
    assert mdlearn.fit("svm", X, y, kernel="rbf").kernel.name == "rbf"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            "A @ B.T + 1j",
            r"^FAULTY returned values of dtype complex128; it needs to return real numbers$",
        ),
        (
            "A.sum(axis=1)",
            r"^FAULTY returned shape \(40,\) for 40 and 40 rows; it needs to be \(40, 40\)$",
        ),
        (
            "A @ B.T / 0.0",
            r"^FAULTY returned NaN or infinity; it needs to return finite numbers$",
        ),
        ("(A + 1.0) @ B.T", r"^kernel 'odd' of odd-kernel 1.0 is not symmetric; it needs k\(a, b\) = k\(b, a\)$"),
        ("-(A @ B.T)", "positive semidefinite"),
    ],
)
def test_values_are_checked(site, values, told):
    site.add("odd-kernel", bringing().replace("A @ B.T", values))
    X, y = sample()
    told = told.replace("FAULTY", r"kernel 'odd' of odd-kernel 1\.0 is faulty: Odd\.values")
    with pytest.raises((TypeError, ValueError), match=told), np.errstate(all="ignore"):
        mdlearn.fit("svm", X, y, kernel="odd", solver="cd", bias="none")
