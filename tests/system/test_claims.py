"""Sentences of README and guide that no other test holds."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np
import pytest
from documents import ROOT

import mdlearn
from mdlearn.driver.driver import PARALLEL_ENTRIES
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.proof import Certificate
from mdlearn.numerics.blas_threads import SINGLE_THREAD_WORK
from mdlearn.objectives.base import Parameter, Terms

SPRING = GivenLoss(
    value=lambda t: np.sqrt(1.0 + (t - 1.0) ** 2) - 1.0,
    derivative=lambda t: (t - 1.0) / np.sqrt(1.0 + (t - 1.0) ** 2),
    second=lambda t: (1.0 + (t - 1.0) ** 2) ** -1.5,
)


class Spring(mdlearn.Objective):
    """1/2 |w|^2 + C sum (sqrt(1 + (z - 1)^2) - 1)."""

    name = "spring"
    summary = "margins are drawn to 1 by a bounded force"
    formula = "1/2 |w|^2 + C sum (sqrt(1 + (z-1)^2) - 1)"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}

    def terms(self, params, total):
        return Terms(loss=SPRING.terms(params["C"]))


class RidgeRegression(mdlearn.Objective):
    """1/2 |w|^2 + C sum (f - y)^2."""

    name = "ridge_regression"
    summary = "squared residuals"
    formula = "1/2 |w|^2 + C sum (f-y)^2"
    task = "regression"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss")}

    def terms(self, params, total):
        sides = (HingeTerm(params["C"], threshold=0.0, side=side, power=2) for side in (1, -1))
        return Terms(loss=tuple(sides))


def test_kinds_of_certificates():
    """Docstring and page name the kinds that built-in objectives have, and the one that only plugins add."""
    estimators = pytest.importorskip("mdlearn.sklearn")
    told = set(re.findall(r'"([a-z ]+)"', Certificate.__doc__.split("kind : str")[1].split("tol : float")[0]))
    page = (ROOT / "docs" / "certificates.rst").read_text(encoding="utf-8")
    X, y = mdlearn.datasets.two_gaussians(60, random_state=0)
    streamed = estimators.LDMClassifier(solver="asgd").partial_fit(X, y, classes=np.unique(y))
    seen = {
        mdlearn.fit("svm", X, y).certificate.kind,
        mdlearn.fit("mdlm", X, y, ridge=0.0, beta=0.05, lambda1=1.0, solver="apg").certificate.kind,
        streamed.certificate_.kind,
    }
    assert told == set(re.findall(r'^``"([a-z ]+)"``$', page, re.MULTILINE)) == seen | {"closed form"}
    assert seen == {"duality gap", "residual", "none"}


def test_goals_met_are_those_of_the_table():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    table = page.split("<!-- peers -->")[1].split("<!-- end of peers -->")[0]
    met = re.findall(r"\| (yes|no) \|$", table, re.MULTILINE)
    assert re.findall(r"^(\d+) of (\d+) goals met\.$", page, re.MULTILINE) == [(str(met.count("yes")), str(len(met)))]


def test_numbers_of_the_page_on_threads():
    page = " ".join((ROOT / "docs" / "guide" / "threads.rst").read_text(encoding="utf-8").split())
    assert f"have {PARALLEL_ENTRIES:.1e} entries together".replace("e+07", "e7") in page
    assert f"fewer than {SINGLE_THREAD_WORK:.0e} multiplications".replace("e+09", "e9") in page
    assert f"have {PARALLEL_ENTRIES:.1e} entries".replace("e+07", "e7") in " ".join(mdlearn.fit.__doc__.split())


def test_plugin_losses_over_row_blocks():
    X, y = mdlearn.datasets.two_gaussians(400, random_state=0)
    streamed = mdlearn.fit(Spring, [(X[:150], y[:150]), (X[150:], y[150:])], None, tol=1e-9)
    whole = mdlearn.fit(Spring, X, y, tol=1e-9)
    assert streamed.certificate.converged
    assert streamed.certificate.objective == pytest.approx(whole.certificate.objective, rel=1e-8)
    numbers = mdlearn.fit(RidgeRegression, [(X[:150], X[:150, 0]), (X[150:], X[150:, 0])], None, tol=1e-9)
    held = mdlearn.fit(RidgeRegression, X, X[:, 0], tol=1e-9).certificate
    assert numbers.certificate.converged
    assert numbers.certificate.objective == pytest.approx(held.objective, rel=1e-8)


# ---------------------------------------------------------------- what the variance is worth

STUDY = (ROOT / "docs" / "variance.md").read_text(encoding="utf-8")


def differences():
    """LDM minus SVM and its standard error, by training rows and kernel."""
    lines = re.findall(r"^\| (\d.*?) \| (\w+) \| [\d.]+ \| [\d.]+ \| (\S+) \+- (\S+) \|", STUDY, re.MULTILINE)
    return {(training, kernel): (float(mean), float(error)) for training, kernel, mean, error in lines}


def test_ldm_is_not_said_to_predict_better():
    """Sentences about accuracy are those of the table, which has its command and its sets."""
    found = differences()
    assert len(found) == 10
    assert not [case for case, (mean, error) in found.items() if mean > 2.0 * error]
    assert [case for case, (mean, error) in found.items() if mean < -2.0 * error] == [
        ("50 rows, 20 % flipped", "linear")
    ]
    nearest = max(found, key=lambda case: found[case][0] / found[case][1])
    assert nearest == ("220 rows, classes 10:1", "linear")
    prose = " ".join(STUDY.split("<!-- end of variance -->")[1].split())
    assert "No row has LDM ahead by two standard errors." in prose
    assert "({:+.2f} +- {:.2f})".format(*found[nearest]) in prose
    alike = [
        abs(found[f"200 rows{flips}", kernel][0]) for flips in ("", ", 20 % flipped") for kernel in ("linear", "rbf")
    ]
    assert "{:.2f} and {:.2f} points apart, and {:.2f} and {:.2f} points where".format(*alike) in prose
    command, count, sets = re.search(
        r"`(python asv_bench/variance\.py .*?)`, \S+, (\d+) sets: (.*)\.\n", STUDY
    ).groups()
    assert (ROOT / command.split()[1]).is_file() and len(sets.split(", ")) == int(count)
    page = " ".join((ROOT / "docs" / "objectives" / "ldm.rst").read_text(encoding="utf-8").split())
    assert "Accuracy is no reason to take it." in page and f"on {count} real sets" in page
    assert "LDM is nowhere ahead of the SVM by two standard errors" in page
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "it predicts about as well as `svm`, not better ([docs/variance.md](docs/variance.md)" in readme
