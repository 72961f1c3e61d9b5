"""Bad arguments of fit: unknown names, numbers out of range, and what is checked before any work."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from error_cases import INF, NAN, CountingKernel, X, Y, one_sentence, refuse

import mdlearn
from mdlearn.extend import Parameter
from mdlearn.objectives.ldm import LDM

# ---------------------------------------------------------------- names


KERNELS = "linear, rbf, poly, precomputed"
UNKNOWN = {
    "objective": ({"objective": "ldn"}, "^objective 'ldn' is unknown; known objectives: .*ldm, .*svm"),
    "objective of another type": (
        {"objective": 3},
        r"^objective needs to be a name \(.*ldm, .*svm, .*\), a class or an instance; got 3",
    ),
    "solver": ({"solver": "smo"}, "^solver 'smo' is unknown; known solvers: .*cd, .*interior"),
    "solver of another type": (
        {"solver": 3},
        r"^solver needs to be a name \(.*cd, .*interior, .*\), a class or an instance; got 3",
    ),
    "kernel": ({"kernel": "gauss"}, f"^kernel 'gauss' is unknown; .*{KERNELS}.* or a callable"),
    "kernel of another type": ({"kernel": 3}, f"^kernel needs to be .*{KERNELS}.* or a callable.*; got 3"),
    "bias": ({"bias": "augmented"}, "^bias 'augmented' is not possible here; give one of none, regularized, free"),
    "bias of another type": ({"bias": True}, "^bias True is not possible here; give one of none, regularized, free"),
    "multiclass": ({"multiclass": "one-vs-all"}, "^multiclass 'one-vs-all' is not possible here; give one of .*ovr"),
    "an impossible multiclass": (
        {"multiclass": "crammer"},
        "^multiclass 'crammer' is not possible here; .*ovr.*fuzzy-min",
    ),
    "joint": ({"multiclass": "joint"}, "^multiclass 'joint' is not possible here; give one of .*ovr"),
    "parameter": ({"lamda1": 1.0}, "^objective 'ldm' has no parameter 'lamda1' here; valid: C, lambda1, lambda2"),
    "a parameter nearly right": ({"lamda1": 1.0}, "; did you mean 'lambda1'[?]$"),
    "an argument nearly right": ({"sample_weights": [1.0]}, "; did you mean 'sample_weight'[?]$"),
    "swapped arguments": ({"objective": np.ones((40, 3))}, r"a class or an instance; got an object of type ndarray$"),
    "a parameter of another objective": (
        {"objective": "svm", "lambda1": 1.0},
        "^objective 'svm' has no parameter 'lambda1' here; valid: C$",
    ),
    "a parameter of another family": (
        {"nu": 1.0},
        "^objective 'ldm' has no parameter 'nu' here; valid: C, lambda1, lambda2",
    ),
    "two unknown parameters": ({"foo": 1.0, "bar": 2.0}, "^objective 'ldm' has no parameter 'foo' here; valid: C,"),
    "solver option": (
        {"solver": "cd", "solver_options": {"nonsense": 1}},
        "^solver 'cd' has no option 'nonsense'; valid solver_options: shrinking",
    ),
    "solver option of interior": (
        {"solver": "interior", "solver_options": {"nonsense": 1}},
        "^solver 'interior' has no option 'nonsense'; valid solver_options: none",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_names_list_the_valid_ones(name):
    settings, sentence = UNKNOWN[name]
    refuse(None, sentence, **settings)


def test_an_objective_made_without_fit_lists_its_parameters_too():
    with pytest.raises(
        ValueError,
        match=r"^objective 'ldm' has no parameter 'lamda1'; valid: C, lambda1, lambda2; did you mean 'lambda1'[?]$",
    ):
        LDM(lamda1=1.0)


def test_solver_options_of_another_type():
    for given in (3, "shrinking"):
        refuse(None, f"^solver_options needs to be a mapping .*; got {given!r}", solver_options=given)


# ---------------------------------------------------------------- numbers


NEEDED = {
    **dict.fromkeys(("C", "tol", "time_limit"), "a number >= 0"),
    **dict.fromkeys(("lambda1", "lambda2"), "a (finite )?number >= 0"),
    "max_iter": "an integer >= 1",
    "random_state": "an integer >= 0",
    "callback": "callable",
    "verbose": "an integer >= 0",
    "gamma": "a number > 0 and finite",
    "degree": "an integer >= 1 and <= 1024",
    "coef0": "a number >= 0 and finite",
}
BAD_NUMBERS = {
    "C": [-1.0, NAN, -INF, "1", None, 1j, [1.0], True],
    "lambda1": [-1e-12, NAN, INF, "1", 1j, [1.0, 2.0]],
    "lambda2": [-1.0, NAN, INF, "1", 1j],
    "tol": [-1e-6, NAN, "1", None, 1j, -INF],
    "max_iter": [0, -1, NAN, 2.5, "10", INF],
    "time_limit": [-1.0, NAN, "10", 1j],
    "random_state": [-1, 2.5, "seed", NAN],
    "callback": [3, "stop"],
    "verbose": ["loud", -1],
}


def needs(name, value):
    return f"^{name} needs to be {NEEDED[name]}; got {re.escape(repr(value))}$"


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_NUMBERS.items() for value in values])
def test_bad_values(name, value):
    work = CountingKernel()
    refuse(None, needs(name, value), kernel=work, **{name: value})
    assert work.calls == 0, "work was begun before the check"


@pytest.mark.parametrize(
    ("name", "value", "kernel"),
    [
        *[
            ("gamma", value, kernel)
            for value in (-1.0, 0.0, NAN, INF, "auto", "big", 1j, [1.0])
            for kernel in ("rbf", "poly")
        ],
        *[("degree", value, "poly") for value in (-1, 0, 2.5, NAN, "3", INF)],
        *[("coef0", value, "poly") for value in (NAN, INF, "1", 1j)],
    ],
)
def test_bad_kernel_parameters(name, value, kernel):
    unknown = f"^gamma {value!r} is unknown; give 'scale' or a number > 0"
    sentence = unknown if value in ("auto", "big") else needs(name, value)
    refuse(None, sentence, kernel=kernel, **{name: value})


def test_gamma_scale_of_constant_data():
    """Var X = 0: 1 / (d Var X) does not exist; either an error that names gamma or a finite number, never NaN."""
    for data in (np.full((12, 3), 2.0), np.zeros((12, 3))):
        try:
            model = mdlearn.fit("ldm", data, Y, kernel="rbf")
        except ValueError as error:
            one_sentence(error, "^gamma")
        else:
            assert np.isfinite(model.decision_function(data)).all()


# ---------------------------------------------------------------- order of checks


BEFORE_WORK = [
    ({"C": -1.0}, "^C needs to be a number >= 0"),
    ({"solver": "nope"}, "^solver 'nope' is unknown"),
    ({"bias": "nope"}, "^bias 'nope' is not possible here"),
    ({"multiclass": "nope"}, "^multiclass 'nope' is not possible here"),
    ({"tol": NAN}, "^tol needs to be a number >= 0"),
    ({"sample_weight": np.full(12, NAN)}, "^sample_weight contains NaN"),
    ({"class_weight": "nope"}, "^class_weight 'nope' is unknown"),
    ({"max_iter": 0}, "^max_iter needs to be an integer >= 1"),
    ({"solver_options": {"nonsense": 1}}, "^no solver has an option 'nonsense'"),
    ({"nonsense": 1}, "^objective 'ldm' has no parameter 'nonsense'"),
    (
        {"C": 1.0, "lambda1": 0.0, "lambda2": 1e9, "bias": "free", "sample_weight": np.where(Y > 0, 1.0, 2.0)},
        r"unbounded below: lambda2=1e\+09 exceeds what C=1 allows for 6 positive and 12 negative rows",
    ),
]


@pytest.mark.parametrize(
    ("bad", "sentence"), BEFORE_WORK, ids=[next(iter(bad)) + str(len(bad)) for bad, _ in BEFORE_WORK]
)
def test_nothing_is_computed_before_the_checks(bad, sentence):
    work = CountingKernel()
    refuse(None, sentence, kernel=work, **bad)
    assert work.calls == 0


@pytest.mark.parametrize("high, sign", [(1.0, "<="), (math.nextafter(1.0, 0.0), "<")])
def test_the_upper_bound_of_a_parameter(high, sign):
    parameter = Parameter(0.5, "a share", high=high)
    assert parameter.check("share", high) == high and parameter.check("share", 0) == 0.0
    for value in (math.nextafter(high, 2.0), 2, np.float32(1.5), -0.1, INF, NAN):
        sentence = re.escape(f"share needs to be a number >= 0 and {sign} 1; got {value!r}")
        with pytest.raises(ValueError, match=f"^{sentence}$"):
            parameter.check("share", value)


def test_arguments_of_fit_are_keywords():
    with pytest.raises(TypeError, match="takes 3 positional arguments"):
        mdlearn.fit("ldm", X, Y, "auto")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        mdlearn.fit("ldm", X)
