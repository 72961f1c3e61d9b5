"""Templates of a new plugin's files with a native, compiled loss: path -> text with $-placeholders."""

from mdlearn.plugins.templates import HOOK, OBJECTIVE_USAGE, PYPROJECT, TESTS

SETUP = '''\
"""The compiled part; everything else is declared in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

loss = Extension("$module._loss", ["src/$module/_loss.pyx"])
setup(ext_modules=cythonize([loss], build_dir="build", compiler_directives={"language_level": 3}))
'''

LOSS = '''\
"""The loss of one margin z, its two derivatives and its conjugate; params points to the width h of the corner.

Other compiled code calls these without the interpreter: they need to be `noexcept nogil`, and safe in several threads.
Nothing of mdlearn is cimported, so that newer versions of it need no new build.
"""


cdef api double value(double z, void *params) noexcept nogil:
    cdef double h = (<double *>params)[0], missing = 1.0 - z
    if missing <= 0.0:
        return 0.0
    return missing * missing / (2.0 * h) if missing < h else missing - 0.5 * h


cdef api double slope(double z, void *params) noexcept nogil:
    # With respect to the margin, and not negated.
    cdef double h = (<double *>params)[0], missing = 1.0 - z
    if missing <= 0.0:
        return 0.0
    return -missing / h if missing < h else -1.0


cdef api double bend(double z, void *params) noexcept nogil:
    cdef double h = (<double *>params)[0], missing = 1.0 - z
    return 1.0 / h if 0.0 < missing < h else 0.0


cdef api double conjugate(double s, void *params) noexcept nogil:
    # sup over z of s z - value(z), for slopes -1 <= s <= 0.
    return s + 0.5 * (<double *>params)[0] * s * s
'''

MODULE = '''\
"""The objective $objective for mdlearn: the hinge loss with a rounded corner, compiled."""

from functools import lru_cache

import mdlearn
from mdlearn.extend import GivenLoss, NativeFunction, Parameter, Terms
from scipy import LowLevelCallable

from . import _loss

requires_api = 1


def compiled(name, h):
    """A function of _loss.pyx with its parameter."""
    return NativeFunction(LowLevelCallable.from_cython(_loss, name), [h])


@lru_cache(maxsize=32)
def corner(h):
    """The loss of this width; its checks take two milliseconds, which later fits are spared."""
    # The conjugate f*(s) makes certificates cheaper; mdlearn does without it, too.
    return GivenLoss(compiled("value", h), compiled("slope", h), compiled("bend", h), compiled("conjugate", h))


class $cls(mdlearn.Objective):
    """1/2 |w|^2 + C sum loss(z); the loss is (1 - z)^2 / (2 h) for 1 - h < z < 1, a line before and 0 beyond."""

    name = "$objective"
    summary = "hinge loss with a rounded corner"
    formula = "1/2 |w|^2 + C sum loss(z), loss = (1 - z)^2 / (2 h) for 1 - h < z < 1"
    parameters = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "h": Parameter(0.5, "width of the corner", low=0.001),
    }

    def terms(self, params, total):
        return Terms(loss=corner(params["h"]).terms(params["C"]))
'''

VALUE_TEST = """

@pytest.mark.parametrize("solver", ["auto", "asgd"])
def test_the_value_is_that_of_the_formula(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = X[:, 0] + rng.standard_normal(200) > 0
    tol = 1e-10 if solver == "auto" else 1.0
    model = mdlearn.fit("$objective", X, y, C=0.1, h=0.4, bias="none", solver=solver, tol=tol)
    w = model.coef_[0]
    z = np.where(y, 1, -1) * (X @ w)
    loss = np.where(z < 0.6, 0.8 - z, np.maximum(0, 1 - z) ** 2 / 0.8)
    assert model.certificate.objective == pytest.approx(0.5 * w @ w + 0.1 * np.sum(loss), rel=1e-9)
    assert model.certificate.converged
"""

README = f"""\
# $distribution

A plugin for mdlearn with a compiled loss: the objective `$objective`. It is an example to start from. The functions in
`src/$module/_loss.pyx` (Cython) are called without the interpreter, by the engines `sgd` and `asgd` at the speed of
built-in losses, and on whole arrays by `newton`. `src/$module/__init__.py` declares the objective.

In an environment where mdlearn is installed, with a C compiler:

```sh
pip install ".[test]"
python -m mdlearn plugins
pytest
```

{OBJECTIVE_USAGE}
"""

NATIVE_FILES = {
    "pyproject.toml": PYPROJECT.replace('"setuptools>=64"', '"setuptools>=64", "cython>=3"'),
    "setup.py": SETUP,
    "README.md": README,
    "src/$module/__init__.py": MODULE + HOOK.replace("$hook", "objectives"),
    "src/$module/_loss.pyx": LOSS,
    "tests/test_$module.py": TESTS + VALUE_TEST,
}
