"""Templates of a new plugin, for `mdlearn.plugins.scaffold`: texts that all kinds share, and those of an objective."""

PYPROJECT = """\
[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "$distribution"
version = "0.1.0"
description = "The objective $objective for mdlearn"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["mdlearn>=0.1"]

[project.optional-dependencies]
test = ["pytest>=8"]

# mdlearn finds the package by this line: the group is always "mdlearn", the value is the module with the hooks.
[project.entry-points.mdlearn]
main = "$module"

[tool.setuptools.packages.find]
where = ["src"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

OBJECTIVE = '''\
"""The objective $objective for mdlearn: the hinge loss, and a price for margins that are far too large."""

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms

requires_api = 1


class $cls(mdlearn.Objective):
    """1/2 |w|^2 + C sum [max(0, 1 - z) + mu max(0, z - 2)^2] over the margins z = y f(x)."""

    name = "$objective"
    summary = "hinge loss with a price for margins above 2"
    formula = "1/2 |w|^2 + C sum [max(0, 1 - z) + mu max(0, z - 2)^2]"
    parameters = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "mu": Parameter(0.1, "weight of margins above 2, within the loss"),
    }

    def terms(self, params, total):
        below = HingeTerm(params["C"])
        above = HingeTerm(params["C"] * params["mu"], side=-1, threshold=2.0, power=2)
        return Terms(loss=(below, above))
'''

HOOK = '''

@mdlearn.hookimpl
def mdlearn_$hook():
    """What this package offers."""
    return [$cls]
'''

TESTS = '''\
"""The objective is registered, keeps every promise of an objective, and has the value that its formula says."""

import mdlearn
import numpy as np
import pytest
from mdlearn.testing import parametrize_with_checks


def test_registered():
    (record,) = [one for one in mdlearn.list_plugins() if one.distribution == "$distribution"]
    assert (record.objectives, record.state, record.error) == (("$objective",), "ok", None)
    assert "$objective" in mdlearn.list_objectives()


@parametrize_with_checks(["$objective"])
def test_conformance(objective, check):
    check(objective)
'''

VALUE_TEST = """

def test_the_value_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + rng.standard_normal(40) > 0
    model = mdlearn.fit("$objective", X, y, C=2.0, mu=0.5, bias="none", tol=1e-10)
    w = model.coef_[0]
    z = np.where(y, 1, -1) * (X @ w)
    value = 0.5 * w @ w + 2.0 * np.sum(np.maximum(0, 1 - z) + 0.5 * np.maximum(0, z - 2) ** 2)
    assert model.certificate.objective == pytest.approx(value, rel=1e-9)
    assert model.certificate.converged
"""

OBJECTIVE_USAGE = """\
In Python: `mdlearn.fit("$objective", X, y)`. `python -m mdlearn objectives` prints its formula and parameters, as its
class declares them."""

README = """\
# $distribution

A plugin for mdlearn: the $kind `$objective`. It is an example to start from; all of it is in `src/$module/__init__.py`.

In an environment where mdlearn is installed:

```sh
pip install -e ".[test]"
python -m mdlearn plugins
pytest
```

$usage
"""
