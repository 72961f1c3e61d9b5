"""Documents of estimators: docstrings put together from those of objectives and from what all have alike."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

from mdlearn.objectives.declaration.parameters_and_terms import WAYS

T = TypeVar("T", bound=type)

KERNEL_PARAMETERS = """\
kernel : str or callable, default "linear"
    "linear", "rbf", "poly", "precomputed" (X is the Gram matrix), a plugin's, or a callable k(A, B) -> (n, m).
    One that compares objects, such as strings, takes X as a list of them; then there is no `n_features_in_`.
gamma : "scale" or float, default "scale"
    Of "rbf" and "poly"; "scale" is 1 / (d Var X). Kernels without it ignore it, as they do `degree` and `coef0`.
degree : int, default 3
    Of "poly".
coef0 : float, default 0
    Of "poly", >= 0.
kernel_params : mapping, optional
    Parameters of a plugin's kernel, and `approximation` and `n_components` of `mdlearn.fit`; searched over as
    ``kernel_params__NAME``.
"""

CLASS_PARAMETERS = """\
multiclass : {%(ways)s}, default "auto"
    How more than two classes are told apart; "auto" is %(auto)s.
class_weight : mapping or "balanced", optional
    Factor per label that multiplies `sample_weight`; "balanced" is sum(w) / (k * weighted count).
stream_total : float, optional
    m of the objective that `partial_fit` approaches: the sum of the weights of all rows, for several passes over them.
    None: of the rows so far, each call's being new ones.
"""

FIT_PARAMETERS = """\
bias : {"none", "regularized", "free"}, optional
    Default: the objective's own, %(bias)s.
solver : str, Solver class or instance, default "auto"
    Engine, see `mdlearn.list_solvers`.
solver_options : mapping, optional
    The engine's own settings; searched over as ``solver_options__NAME``.
tol : float or "decisions", default 1e-10
    Certified relative gap at which the fit stops. The default is 1e-6 for float32 rows, which allow no better. Engines
    with a published end (asgd, sgd) warn of a larger gap only where `tol` is not the default. "decisions": the first of
    the gaps 1e-2, ..., 1e-9 at which the labels of 99.9 %% of the rows are proven to be those of the exact optimum.
max_iter : int, optional
    Most reports of the engine per problem.
time_limit : float, optional
    Wall seconds for a fit; the best model so far is kept, with a warning.
random_state : int, RandomState instance or None, default None
    None means 0: the same call gives the same bits. An instance (or ``numpy.random``, the global one) gives its next
    number as the seed.
n_threads : int, optional
    Threads for pieces of large products, and for the problems of several classes. None: one for small fits, as many as
    BLAS is set to for large ones.
warm_start : bool, default False
    Begin where the last fit ended; it needs to be of the same kind of problem (as many rows, same classes and kernel).
callback : callable, optional
    Called with a State (iteration, objective, lower_bound, gap, elapsed, problem); True stops the fit.
verbose : int, default 0
    1 shows progress on standard error, 2 a line per report.
"""

MODEL_ATTRIBUTE = """\
model_ : Model
    What `mdlearn.fit` returns: margins, history, saving.
"""

INPUT_ATTRIBUTES = """\
n_features_in_ : int
    Columns of X at fit.
feature_names_in_ : ndarray of shape (d,)
    Column names, where X was a data frame with string ones.
"""

DOCSTRING_SECTIONS = """\
Parameters
----------
%(own)s
%(shared)s

Attributes
----------
%(attributes)s
"""


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def documented_estimator(made: T) -> T:
    """Document an estimator's class: a keyword-only dataclass, own parameters first, with a filled docstring.

    ``%(own)s`` in the docstring stands for the parameters that the objective documents, as far as the class has them
    and does not document them itself; ``%(shared)s`` for those that such estimators have alike, ``%(attributes)s`` for
    what properties and scikit-learn document; ``%(sections)s`` for the two sections where nothing is added to these.
    """
    cls: Any = dataclass(eq=False, repr=False, kw_only=True)(made)
    bases = [vars(one).get("__dataclass_fields__", {}) for one in cls.__mro__]
    depth = {name: i for i, names in enumerate(bases) for name in names} | {"self": -1}
    signature = inspect.signature(cls.__init__)
    order = sorted(signature.parameters.values(), key=lambda p: (p.kind, depth[p.name]))
    cls.__init__.__signature__ = signature.replace(parameters=order)
    if cls.__doc__:  # there is none under python -OO
        names, objective = {one.name for one in fields(cls)}, cls._objective
        text = inspect.cleandoc(cls.__doc__).replace("%(sections)s\n", DOCSTRING_SECTIONS)
        kernel = "kernel" in names
        ways = ", ".join(f'"{way}"' for way in ("auto", *(objective.multiclass if objective else WAYS)))
        shared = "".join((CLASS_PARAMETERS * ("multiclass" in names), KERNEL_PARAMETERS * kernel, FIT_PARAMETERS)) % {
            "bias": f'"{objective.default_bias}"' if objective else '"regularized" for most',
            "ways": ways,
            "auto": f'"{objective.multiclass[0]}"' if objective else "the objective's first choice",
        }
        attributes = (MODEL_ATTRIBUTE if hasattr(cls, "predict") else "") + _property_documents(cls) + INPUT_ATTRIBUTES
        given = {name for name in names if f"\n{name} : " in text}
        own = "".join(entry for name, entry in _parameter_documents(objective).items() if name in names - given)
        filled = {"own": own, "shared": shared, "attributes": attributes}
        cls.__doc__ = text % {name: part.rstrip() for name, part in filled.items()}
    return made


def _parameter_documents(objective: Any) -> dict[str, str]:
    """Entries of the section Parameters in the docstring of an objective, by name."""
    section = re.search(r"\nParameters\n-+\n(.+?\n)(\n|$)", f"{inspect.getdoc(objective)}\n", re.DOTALL)
    entries = re.split(r"^(?=\w+ : )", section[1], flags=re.MULTILINE)[1:] if objective and section else []
    return {entry.split(" : ")[0]: entry for entry in entries}


def _property_documents(cls: type) -> str:
    """Entries of the public properties that classes of mdlearn have: type and docstring."""
    ours = [base for base in reversed(cls.__mro__) if base.__module__.startswith("mdlearn.")]
    found = {name: one for base in ours for name, one in vars(base).items() if name[0] != "_"}
    getters = {name: one.fget for name, one in found.items() if isinstance(one, property)}
    text = "".join(f"{name} : {get.__annotations__['return']}\n    {get.__doc__}\n" for name, get in getters.items())
    return text.replace("np.ndarray", "ndarray")
