"""Loading of models: a file that `persistence` reads, decoded; whatever is wrong with it is one sentence.

Every name, dtype and shape is checked on the way from header and arrays to a Model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.features.kernel_approximation import KernelApproximationMap
from mdlearn.data.features.kernels import PARAMETERS, BroughtKernel, Kernel, check_kernel_parameters, make_plugin_kernel
from mdlearn.data.features.landmark_map import LandmarkMap
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows, Rows
from mdlearn.forms.margin import BIASES
from mdlearn.forms.proof import Certificate, State
from mdlearn.model.class_decisions import EACH_LABEL, PAIRWISE, n_decision_functions
from mdlearn.model.file.persistence import open_model_file, read_model_file, shown_model_path
from mdlearn.model.file.schema import (
    CERTIFICATE,
    DISTANCE,
    HISTORY,
    NUMBER,
    OWN_TASK,
    OWN_WAY,
    VOUCHED_BY,
    UnreadableModel,
    check_header_type,
    header_choice,
    header_field,
)
from mdlearn.model.model import Model
from mdlearn.model.task import TASKS, Task, task_of
from mdlearn.numerics import memory

MULTICLASS = ("ovr", "joint", *PAIRWISE)
Lookup = Callable[[str, str], Any]
"""lookup(kind, name) returns the class that has this name; ValueError says that none has."""
LOADING_ERROR_CHARACTERS = 600
"""Characters of an error that may come from a file."""


def decode_model(header: dict[str, Any], arrays: dict[str, np.ndarray], lookup: Lookup) -> Model:
    """Decode a model file to a Model; UnreadableModel (or another error, for a wrong type) when the file makes none."""
    rest = ArraysToDecode(arrays)
    # Format 1 knew nothing but one-vs-rest, and coefficients that are combinations of rows.
    multiclass = header_choice(header.get("multiclass", "ovr"), (*MULTICLASS, "none", OWN_TASK))
    task = _decoded_task(header, multiclass, lookup)
    if multiclass == OWN_TASK:
        multiclass = header_choice(header.get(OWN_WAY, "none"), (*MULTICLASS, EACH_LABEL, "none"))
    labelled = task.y not in ("numbers", "none")
    classes = _decoded_classes(rest.left.pop("classes")) if labelled else rest.take("classes", "f", 0)
    k = classes.shape[0]
    problems = n_decision_functions(k, multiclass)
    width = header_field(header, "n_features_in", (int,))
    if width < 1:
        raise UnreadableModel(f"its header gives 'n_features_in' as {width}")
    given = header_field(header, "kernel", (dict,))
    approximate = header.get("approximation") is not None
    name, linear = given["name"], given["name"] == "linear" or approximate
    terms = rest.left["duals"].shape[1:-1] if "duals" in rest.left else ()
    duals = rest.take("duals", "f", problems, *terms[:1], None)
    m = duals.shape[-1]
    combination = check_header_type(header.get("combination", True), (bool,), "combination")
    alpha = rest.take("dual_coef", "f", problems, m) if combination or not linear else None
    support, n_support = _decoded_support(rest, m, k)
    if task.y not in ("some labels", "indicators") and n_support.sum() != support.shape[0]:
        raise UnreadableModel("its numbers of support rows are not those of its support rows")
    kernel = _decoded_kernel(given, rest, width) if name in PARAMETERS else _decoded_plugin_kernel(given, lookup)
    if name == "precomputed" and width != m:
        raise UnreadableModel("its number of kernel values is not that of its training rows")
    names = header["feature_names"]
    if names is not None and (len(names) != width or not all(isinstance(name, str) for name in names)):
        raise UnreadableModel("its column names are not one string per column")
    extras = _decoded_attributes(check_header_type(header.get("extras", {}), (dict,), "extras"), rest, problems)
    mapping: FeatureMap | None = None
    if approximate:
        mapping = KernelApproximationMap.decoded(
            {**_decoded_params(header_field(header, "map", (dict,)), rest), "kernel": kernel}
        )
        header_choice(header["approximation"], (mapping.approximation,))
    elif header.get("map") is not None:
        mapping = _decoded_map(header, extras, rest, lookup)
    if mapping is not None:
        if mapping.columns != width:
            raise UnreadableModel(f"its features are made of {mapping.columns} columns, and X had {width}")
        if not linear:
            mapping.over(kernel)
        extras |= mapping.attributes()
    objective = header_field(header, "objective", (str,))
    params = _decoded_params(header_field(header, "params", (dict,)), rest)
    _check_decoded_parameters(objective, params, kernel, lookup)
    model = task.model(
        objective=objective,
        params=params,
        kernel=kernel,
        bias=header_choice(header["bias"], BIASES),
        multiclass=multiclass,
        probabilities=check_header_type(header.get("probabilities", False), (bool,), "probabilities"),
        solver=header_field(header, "solver", (str,)),
        solver_reason=header_field(header, "solver_reason", (str,)),
        solver_claims=_decoded_claims(header.get("solver_claims", {})),
        n_iter=header_field(header, "n_iter", (int,)),
        history=_decoded_history(header_field(header, "history", (dict,))),
        certificate=_decoded_certificate(header_field(header, "certificate", (dict,)), nested=True),
        classes_=classes,
        n_features_in_=width,
        intercept_=rest.take("intercept", "f", problems),
        duals=duals,
        support_=support,
        n_support_=n_support,
        _names=None if names is None else tuple(names),
        _coef=rest.take("coef", "f", problems, mapping.width if mapping else width) if linear else None,
        _alpha=alpha,
        _rows=_decoded_objects(header, rest, kernel, support.shape[0])
        if given["rows"] == "objects"
        else _decoded_rows(given["rows"], rest, support.shape[0], width, not linear and name != "precomputed"),
        _norms=rest.take("norms", "f", problems),
        extras=extras,
        _map=mapping,
    )
    if rest.left:
        raise UnreadableModel(f"it holds the array {min(rest.left)!r}, which does not belong to such a model")
    if mapping is not None and model._scores(DenseRows(np.zeros((1, width)))).shape != (1, problems):
        raise UnreadableModel("its features do not fit its coefficients")
    return model


def _decoded_task(header: dict[str, Any], multiclass: str, lookup: Lookup) -> Task:
    """Decoded task of a model file: one of mdlearn, or that of a plugin's objective."""
    if multiclass != OWN_TASK:
        return TASKS["regression" if multiclass == "none" else "classification"]
    name, cls = header_field(header, "task", (str,)), _decoded_class(lookup, "objective", header["objective"])
    found = task_of(cls)
    if found.name != name:
        raise UnreadableModel(f"its task is {name!r}, that of the installed objective {cls.name!r} is {found.name!r}")
    return found


def _decoded_claims(given: Any) -> dict[str, float | None]:
    """Decoded claims of a model file: operations by the names of engines; older files have none."""
    claims: dict[str, float | None] = check_header_type(given, (dict,), "solver_claims")
    for value in claims.values():
        check_header_type(value, (float, int, type(None)), "solver_claims")
    return claims


def _decoded_support(rest: ArraysToDecode, m: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Decoded support rows among m of a model file, and their number in each of k classes."""
    support = rest.take("support", "i", None).astype(np.intp, copy=False)
    if support.size and (support[0] < 0 or support[-1] >= m or not _decoded_indices_rise(support).all()):
        raise UnreadableModel("its support rows are out of order or out of range")
    counts = rest.take("n_support", "i", max(k, 1)).astype(np.intp, copy=False)
    if (counts < 0).any() or counts.max() > support.shape[0]:
        raise UnreadableModel("its numbers of support rows are not those of its support rows")
    return support, counts


def _decoded_params(given: dict[str, Any], rest: ArraysToDecode) -> dict[str, Any]:
    """Decoded parameters of a model file by name; arrays are in the file under the name that the header gives."""
    return {
        name: rest.take_any(value["array"]) if isinstance(value, dict) and value.keys() == {"array"} else value
        for name, value in given.items()
    }


def _check_decoded_parameters(objective: str, params: dict[str, Any], kernel: Kernel, lookup: Lookup) -> None:
    """Check decoded hyper-parameters as a fit does, where the objective is known; a plugin's may not be installed."""
    for name, value in kernel.params.items():
        if name in params and params[name] != value:
            raise UnreadableModel(f"its header gives {name!r} as {params[name]!r} and as {value!r}")
    try:
        declared = lookup("objective", objective).parameters
    except ValueError:
        return
    for name in declared.keys() & params.keys() - kernel.params.keys():
        if isinstance(params[name], (np.ndarray, list)) or params[name] != declared[name].default:
            try:
                declared[name].check(name, params[name])
            except (TypeError, ValueError) as error:
                raise UnreadableModel(f"its objective {objective!r} cannot be: {error}") from None


def _decoded_attributes(given: dict[str, Any], rest: ArraysToDecode, problems: int) -> dict[str, Any]:
    """Decoded attributes of a model file that only some objectives have: an array each, or one per problem."""
    extras: dict[str, Any] = {}
    for name, several in given.items():
        count = several is None or check_header_type(several, (int,), "extras") == problems
        if not (count and name.isidentifier() and name[0] != "_") or hasattr(Model, name):
            raise UnreadableModel(f"its header gives {several!r} arrays of {name!r} for {problems} problems")
        arrays = tuple(rest.take_any(f"extra_{name}_{i}") for i in range(several or 1))
        extras[name] = arrays[0] if several is None else arrays
    return extras


def _decoded_map(header: dict[str, Any], extras: dict[str, Any], rest: ArraysToDecode, lookup: Lookup) -> FeatureMap:
    """Decoded map of new rows to features of a model file, by the class that the objective names for it."""
    given = header_field(header, "map", (dict,))
    if header["version"] < 3:
        return _decoded_old_map(given, extras, rest)
    objective = _decoded_class(lookup, "objective", header["objective"])
    if objective.feature_map is None:
        raise UnreadableModel(f"it needs a feature map, and the objective {objective.name!r} has none")
    return objective.feature_map.decoded(_decoded_params(given, rest))


def _decoded_old_map(given: dict[str, Any], extras: dict[str, Any], rest: ArraysToDecode) -> LandmarkMap:
    """Decoded landmark map of formats 1 and 2, in which landmarks and centres were attributes of the model only."""
    projection = header_field(given, "projection", (dict,))
    values = {
        "centers": extras["centers_"],
        "landmarks": extras["landmarks_"],
        "projection": projection["name"],
        "gamma": projection["params"].get("gamma"),
        "centre": rest.take("map_centre", "f", None) if "map_centre" in rest.left else None,
        "spread": given["width"],
        "mix": rest.take("map_mix", "f", None, None) if "map_mix" in rest.left else None,
    }
    return LandmarkMap.decoded(values)


def _decoded_classes(classes: np.ndarray) -> np.ndarray:
    """Decoded labels of a model file's classes: two or more, different and sorted."""
    # tolist checks the code points of strings.
    if classes.ndim != 1 or classes.shape[0] < 2 or len(classes.tolist()) != np.unique(classes).shape[0]:
        raise UnreadableModel("its labels are not two or more different ones")
    if not np.array_equal(classes, np.sort(classes)):
        raise UnreadableModel("its labels are not sorted")
    return classes


def _decoded_kernel(given: dict[str, Any], rest: ArraysToDecode, width: int) -> Kernel:
    """Decoded built-in kernel of a model file, with its parameters and centre."""
    name = header_choice(given["name"], tuple(PARAMETERS))
    params = header_field(given, "params", (dict,))
    if sorted(params) != sorted(PARAMETERS[name]):
        raise UnreadableModel(f"its kernel {name!r} has the parameters {sorted(params)}")
    try:
        params = check_kernel_parameters(params)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnreadableModel(f"its kernel {name!r} cannot be: {error}") from None
    centre = rest.take("centre", "f", width) if name == "rbf" and "centre" in rest.left else None
    return Kernel(name, params, None, centre)


def _decoded_plugin_kernel(given: dict[str, Any], lookup: Lookup) -> Kernel:
    """Decoded kernel of a plugin in a model file, with the parameters of the file."""
    cls = _decoded_class(lookup, "kernel", given["name"])
    params = header_field(given, "params", (dict,))
    if sorted(params) != sorted(cls.parameters):
        taken = sorted(cls.parameters)
        raise UnreadableModel(f"its kernel {cls.name!r} has the parameters {sorted(params)}, the installed one {taken}")
    try:
        return make_plugin_kernel(cls, {key: header_field(params, key, NUMBER) for key in cls.parameters}, float("nan"))
    except (TypeError, ValueError) as error:
        raise UnreadableModel(f"the installed kernel {cls.name!r} refuses its parameters: {error}") from None


def _decoded_indices_rise(numbers: np.ndarray) -> np.ndarray:
    """Where the next one of decoded whole numbers is larger: a difference of two may overflow, to another sign."""
    return numbers[1:] > numbers[:-1]


def _decoded_rows(kind: Any, rest: ArraysToDecode, n: int, width: int, wanted: bool) -> Rows | None:
    """Decoded support rows of a kernel model's file."""
    header_choice(kind, ("dense", "csr") if wanted else ("none",))
    if kind == "dense":
        return DenseRows(rest.take("rows", "f", n, width))
    if kind == "none":
        return None
    from scipy.sparse import csr_matrix

    data = rest.take("rows_data", "f", None)
    indices = rest.take("rows_indices", "i", data.shape[0])
    indptr = rest.take("rows_indptr", "i", n + 1)
    # Compiled code trusts these: rows in order, columns within the width and rising within each row.
    starts = np.zeros(data.shape[0] + 1, dtype=bool)
    fits = indptr[0] == 0 and indptr[-1] == data.shape[0] and bool((indptr[1:] >= indptr[:-1]).all())
    if fits and data.shape[0]:
        starts[indptr] = True
        rising = _decoded_indices_rise(indices) | starts[1:-1]
        fits = bool(rising.all()) and int(indices.min()) >= 0 and int(indices.max()) < width
    if not fits:
        raise UnreadableModel("its sparse rows are not in order")
    return CsrRows(csr_matrix((data, indices, indptr), shape=(n, width)))


def _decoded_objects(header: dict[str, Any], rest: ArraysToDecode, kernel: Kernel, n: int) -> Rows:
    """Decoded support rows of a model file whose kernel compares objects: the kernel makes them of their values."""
    if not isinstance(kernel, BroughtKernel):
        raise UnreadableModel(f"its kernel {kernel.name!r} compares no objects")
    return kernel.decoded_rows(_decoded_params(header_field(header, "objects", (dict,)), rest), n)


def _decoded_certificate(given: dict[str, Any], nested: bool) -> Certificate:
    """Decoded certificate of a model file, with those of its parts where it is nested."""
    fields = {name: header_field(given, name, types) for name, types in CERTIFICATE.items()}
    fields |= {name: float(fields[name]) for name, types in CERTIFICATE.items() if types is NUMBER}
    parts = tuple(_decoded_certificate(part, nested=False) for part in (given["parts"] if nested else ()))
    vouched_by = check_header_type(given.get(VOUCHED_BY, ""), (str,), VOUCHED_BY)
    distance = float(check_header_type(given.get(DISTANCE, math.inf), NUMBER, DISTANCE))
    if not distance >= 0.0:
        raise UnreadableModel(f"its certificate gives the distance {distance}")
    return Certificate(**fields, parts=parts, source="file", vouched_by=vouched_by, distance=distance)


def _decoded_history(given: dict[str, Any]) -> list[State]:
    """Decoded history of a model file: one state per record."""
    for name, types in HISTORY.items():
        for value in given[name]:
            check_header_type(value, types, "history")
    if len({len(given[name]) for name in HISTORY}) != 1:
        raise UnreadableModel("its history is incomplete")
    return [State(*record) for record in zip(*(given[name] for name in HISTORY))]


def _decoded_class(lookup: Lookup, kind: str, name: Any) -> Any:
    """Class that a decoded model file needs; UnreadableModel when its plugin is missing."""
    name = check_header_type(name, (str,), kind)
    try:
        return lookup(kind, name)
    except ValueError as error:
        raise UnreadableModel(f"it needs the {kind} {name!r} of a plugin; {error}") from None


class ArraysToDecode:
    """Arrays of a model file, taken out one by one; one that is left in the end does not belong there."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.left = dict(arrays)

    def take(self, name: str, kind: str, *shape: int | None) -> np.ndarray:
        """Return an array in native byte order; `kind` is a dtype kind, None stands for any length."""
        array = self.left.pop(name, None)
        if array is None:
            raise UnreadableModel(f"it lacks the array {name!r}")
        fits = len(array.shape) == len(shape) and all(w is None or n == w for n, w in zip(array.shape, shape))
        if array.dtype.kind != kind or not fits or (kind == "f" and array.dtype.itemsize not in (4, 8)):
            raise UnreadableModel(f"its array {name!r} has dtype {array.dtype} and shape {array.shape}")
        if kind == "f" and not np.isfinite(array).all():
            raise UnreadableModel(f"its array {name!r} holds NaN or infinity")
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def take_any(self, name: str) -> np.ndarray:
        """Return an array of numbers or booleans of any shape."""
        array = self.left.get(name)
        if array is None:
            raise UnreadableModel(f"it lacks the array {name!r}")
        if array.dtype.kind not in "biuf":
            raise UnreadableModel(f"its array {name!r} has dtype {array.dtype}")
        del self.left[name]
        return array.astype(array.dtype.newbyteorder("="), copy=False)


def load_model_file(path: str | os.PathLike[str], lookup: Lookup) -> tuple[Model, dict[str, Any]]:
    """Load a persistent model and the notes saved with it; `lookup` finds the classes that its file names.

    `lookup`: lookup(kind, name) returns the class that has a name; ValueError when none has. It is asked for kernels
    that are not built in, and for objectives that make features of their own. Raises ValueError, OSError as for
    `mdlearn.load`.
    """
    with memory.memory_error_in_words(f"loading {shown_model_path(path)}"), open_model_file(path) as file:
        try:
            header, arrays = read_model_file(file)
            if not isinstance(header["notes"], dict):
                raise UnreadableModel("its notes are no mapping")
            return decode_model(header, arrays, lookup), header["notes"]
        except MemoryError:
            raise
        except UnreadableModel as error:
            raise ValueError(f"{shown_model_path(path)} cannot be loaded: {_shortened_loading_error(error)}") from None
        except Exception as error:
            # Damage makes JSON, and the classes that a model is made of, raise nearly anything.
            raise ValueError(
                f"{shown_model_path(path)} cannot be loaded: it is damaged, incomplete or not a model file of mdlearn "
                f"({type(error).__name__}: {_shortened_loading_error(error)})"
            ) from error


def _shortened_loading_error(error: Exception) -> str:
    """Shorten an error of loading a model and replace unprintable characters: it may quote the file."""
    text = str(error)
    plain = "".join(c if c.isprintable() else "?" for c in text[:LOADING_ERROR_CHARACTERS])
    return plain if len(text) <= LOADING_ERROR_CHARACTERS else f"{plain}..."
