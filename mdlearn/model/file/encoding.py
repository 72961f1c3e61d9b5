"""Encoding of model files: from a Model to header and arrays, plain values and numbers, no code."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from mdlearn.data.features.kernels import BroughtKernel
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.object_rows import ObjectRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.errors import call_with_error_notes, came, faulty
from mdlearn.forms.proof import Certificate
from mdlearn.model.file.archive import LABEL_KINDS
from mdlearn.model.file.schema import (
    BUILT_IN_TASKS,
    CERTIFICATE,
    FORMAT,
    HISTORY,
    OWN_TASK,
    OWN_WAY,
    VERSION,
    VOUCHED_BY,
)
from mdlearn.model.record import FittedRecord

FINITE_ARRAYS = {"intercept", "duals", "norms", "dual_coef", "coef", "rows_data", "rows", "centre"}
"""Arrays that hold finite numbers alone, as `decode_model` asks."""


def encode_model(model: FittedRecord, notes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Encode a model for a file as header and arrays; ValueError for anything that a file cannot contain."""
    kernel, certificate = model.kernel, model.certificate
    if kernel.name == "callable":
        raise ValueError(
            "a model with a callable kernel cannot be saved, because a model file holds no code; fit with "
            "kernel='precomputed' and save that model"
        )
    code = [name for name, value in model.params.items() if callable(value)]
    if code:
        raise ValueError(
            f"a model with a callable {code[0]} cannot be saved, because a model file holds no code; fit with a choice "
            "by name, or give the points that the callable makes as an array, and save that model"
        )
    if model.classes_.dtype.kind not in LABEL_KINDS:
        raise ValueError(
            f"labels of dtype {model.classes_.dtype} cannot be saved; fit with numbers, booleans or fixed-width strings"
        )
    arrays = {
        "classes": model.classes_,
        "intercept": model.intercept_,
        "duals": model.duals,
        "support": model.support_,
        "n_support": model.n_support_,
        "norms": model._norms,
    }
    rows, objects = "none", {}
    if model._alpha is not None:
        arrays["dual_coef"] = model._alpha
    if model._coef is not None:
        arrays["coef"] = model._coef
    elif isinstance(model._rows, CsrRows):
        rows, A = "csr", model._rows.X
        arrays |= {"rows_data": A.data, "rows_indices": A.indices, "rows_indptr": A.indptr}
    elif isinstance(model._rows, ObjectRows):
        assert isinstance(kernel, BroughtKernel)
        values = kernel.encoded_rows(model._rows)
        rows, objects = "objects", {name: _encoded_value(arrays, f"object_{name}", one) for name, one in values.items()}
    elif isinstance(model._rows, DenseRows):
        rows, arrays["rows"] = "dense", model._rows.X
    if kernel.centre is not None:
        arrays["centre"] = kernel.centre
    place, extras = None, {}
    params = {name: _encoded_value(arrays, f"param_{name}", value) for name, value in model.params.items()}
    if model._map is not None:
        values = call_with_error_notes(model._map, "a feature map", "encoded")
        if not isinstance(values, Mapping):
            raise faulty(model._map, "a feature map", "encoded", f"returned {came(values)}, a mapping is needed")
        place = {name: _encoded_value(arrays, f"map_{name}", value) for name, value in values.items()}
    for name, value in model.extras.items():
        if model._map is not None and name in model._map.attributes():
            continue
        several = isinstance(value, tuple)
        extras[name] = len(value) if several else None
        for i, array in enumerate(value if several else [value]):
            arrays[f"extra_{name}_{i}"] = array
    for name in FINITE_ARRAYS & arrays.keys():
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"a model with NaN or infinity in its {name} cannot be saved; it predicts nothing")
    arrays = {name: _contiguous_to_encode(array) for name, array in arrays.items()}
    parts = [_encoded_certificate(part) for part in certificate.parts]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": sys.modules["mdlearn"].__version__,
        "arrays": {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()},
        "objective": model.objective,
        "params": params,
        "extras": extras,
        "map": place,
        "approximation": model.approximation,
        "kernel": {"name": kernel.name, "params": kernel.params, "rows": rows},
        "bias": model.bias,
        "multiclass": model.multiclass,
        "probabilities": model.probabilities,
        "combination": model._alpha is not None,
        "solver": model.solver,
        "solver_reason": model.solver_reason,
        "solver_claims": model.solver_claims,
        "n_iter": model.n_iter,
        "n_features_in": model.n_features_in_,
        "feature_names": model._names,
        "certificate": {**_encoded_certificate(certificate), "parts": parts},
        "history": {name: [getattr(state, name) for state in model.history] for name in HISTORY},
        "notes": notes,
    }
    if rows == "objects":
        header["objects"] = objects
    if model.task not in BUILT_IN_TASKS:
        header |= {"multiclass": OWN_TASK, "task": model.task, OWN_WAY: model.multiclass}
    return {key: _encoded_json_value(value, key) for key, value in header.items()}, arrays


def _encoded_value(arrays: dict[str, np.ndarray], name: str, value: Any) -> Any:
    """Encoded value for a model file's header: an array goes among the arrays, and the entry has its name."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in "biuf":
        raise ValueError(f"{name} cannot be saved: a model file holds arrays of numbers there, not {value.dtype}")
    arrays[name] = value
    return {"array": name}


def _encoded_certificate(record: Certificate) -> dict[str, Any]:
    """Encoded fields of a certificate for a model file, but for its parts."""
    names = [*CERTIFICATE, VOUCHED_BY] if record.vouched_by else CERTIFICATE
    return {name: getattr(record, name) for name in names}


def _contiguous_to_encode(array: np.ndarray) -> np.ndarray:
    """Array to encode in a model file, contiguous: a copy where it is not yet."""
    array = np.asarray(array)
    return array if array.flags.f_contiguous else np.ascontiguousarray(array)


def _encoded_json_value(value: Any, where: str) -> Any:
    """Encoded values for JSON; infinity and NaN, which JSON lacks, become {"number": "inf"}."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(float(value))}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _encoded_json_value(item, f"{where} {key!r}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encoded_json_value(item, where) for item in value]
    raise ValueError(f"{where} cannot be saved: a model file holds numbers and strings there, not {type(value)}")
