"""What a certificate proves of decision values: |f - f*| <= sqrt(2 (P - D)) |phi(x)|, given 1/2 |w|^2."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from documents import ROOT

import mdlearn
from mdlearn.errors import ConvergenceWarning

MACHINES = [("svm", {"C": 10.0}), ("ldm", {"C": 1.0}), ("ldm", {"C": 5.0, "lambda1": 50.0}), ("lsvm", {"nu": 3.0})]
GAMMA = 0.3


def lengths(X, kernel, bias):
    """|phi(x)| of every row; a regularized bias is a feature of value 1."""
    squares = (X**2).sum(axis=1) if kernel == "linear" else np.ones(len(X))
    return np.sqrt(squares + (bias == "regularized"))


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("kernel", [{"kernel": "linear"}, {"kernel": "rbf", "gamma": GAMMA}])
@pytest.mark.parametrize("name, params", MACHINES)
def test_every_early_end_keeps_the_bound(name, params, kernel, bias):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4)) * [1.0, 5.0, 0.2, 1.0]
    y = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1, -1)
    fresh = 3.0 * rng.standard_normal((200, 4))
    shared = {**params, **kernel, "bias": bias}
    exact = mdlearn.fit(name, X, y, tol=1e-11, **shared).decision_function(fresh)
    moved = 0.0
    ends = [{"solver": "interior", "max_iter": steps} for steps in (1, 2, 3, 5, 8)]
    for end in (*ends, {"tol": 0.3}, {"tol": 0.03}, {"tol": 3e-3}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            early = mdlearn.fit(name, X, y, **end, **shared)
        room = max(early.certificate.objective - early.certificate.lower_bound, 0.0)
        apart = np.abs(early.decision_function(fresh) - exact)
        slack = 1e-5 * np.abs(exact).max()
        assert (apart <= np.sqrt(2.0 * room) * lengths(fresh, kernel["kernel"], bias) + slack).all()
        moved = max(moved, float(apart.max()))
    assert moved > 1e-3, "some early end has to be far enough away to tell"


def test_the_relative_gap_says_no_such_thing():
    """The square root of the relative gap bounds nothing: the difference counts, and the length of phi(x)."""
    rng = np.random.default_rng(0)
    X = 100.0 * rng.standard_normal((80, 3))
    y = np.where(X[:, 0] + 100.0 * rng.standard_normal(80) > 0, 1, -1)
    exact = mdlearn.fit("svm", X, y, bias="none", tol=1e-12).decision_function(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early = mdlearn.fit("svm", X, y, bias="none", solver="cd", max_iter=3)
    assert np.abs(early.decision_function(X) - exact).max() > np.sqrt(early.certificate.gap)


def test_nothing_is_proven_where_the_bias_is_free():
    """Of two rows within the margin every shift of both decision values has the least objective."""
    X, y = np.array([[-1.0], [1.0]]), np.array([-1, 1])
    model = mdlearn.fit("svm", X, y, C=0.1, bias="free", tol=1e-12)
    shifted = model.decision_function(X) + 0.5
    objective = 0.5 * float(model.coef_[0, 0]) ** 2 + 0.1 * np.maximum(0.0, 1.0 - y * shifted).sum()
    assert objective == pytest.approx(model.certificate.lower_bound, rel=1e-10)
    assert 0.5 > np.sqrt(2.0 * abs(objective - model.certificate.lower_bound)) * np.abs(X).max()


def test_the_page_of_certificates_says_so():
    page = " ".join((ROOT / "docs" / "certificates.rst").read_text(encoding="utf-8").split())
    told = page.split("What it says of decision values")[1].split(" Kinds ---")[0]
    assert r"|f(x) - f^*(x)| \le \sqrt{2\, (P - D)}\; \|\varphi(x)\|." in told
    assert "P - D is the difference itself, not the relative gap." in told
    assert "A regularized bias is one more feature, of value 1" in told
    assert "Nothing of the kind is proven where the bias is free, or where the objective has no squared norm." in told


def test_no_page_claims_it():
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.rst"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("docs/gallery/*.py"),
    ]
    pages += [*ROOT.glob("mdlearn/**/*.py"), *ROOT.glob("plugins/*/README.md"), *ROOT.glob("plugins/*/src/**/*.py")]
    claims = re.compile(r"square\s+root\s+of\s+(?:the\s+(?:relative\s+)?gap|g\b)|\bgap\b[^.]*\bits\s+square\s+root")
    assert len(pages) > 100
    assert [page.name for page in pages if claims.search(page.read_text(encoding="utf-8"))] == []
