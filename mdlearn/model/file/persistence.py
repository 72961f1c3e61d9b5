"""Persistence of models: one file of arrays and a JSON header, written atomically, read without executing anything.

Members: ``header`` (UTF-8 JSON, as bytes), ``digest`` (SHA-256 of the header and of the arrays) and the arrays that the
header lists with dtype and shape, in this order (`mdlearn.model.file.archive`).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import stat
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
from mdlearn.model.file import archive
from mdlearn.model.file.archive import LABEL_KINDS, ArchiveMembers
from mdlearn.model.file.schema import (
    BUILT_IN_TASKS,
    CERTIFICATE,
    DISTANCE,
    FORMAT,
    HISTORY,
    OWN_TASK,
    OWN_WAY,
    VERSION,
    VOUCHED_BY,
    FutureFormat,
    UnreadableModel,
)
from mdlearn.model.record import FittedRecord
from mdlearn.numerics import memory
from mdlearn.output_files import output_file_target, replace_file

HEADER_BYTES_LIMIT = 1 << 26
"""Numbers in the header take up to some thirty times as much in memory; a million columns have their names in 64 MB."""
HEADER_EXPANSION = 32.0
NPY_HEADER_BYTES = 1024
"""More than what an .npy member holds beside its content."""
FINITE_ARRAYS = {"intercept", "duals", "norms", "dual_coef", "coef", "rows_data", "rows", "centre"}
"""Arrays that hold finite numbers alone, as `decode_model` asks."""


def save(model: FittedRecord, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None) -> None:
    """Save a model for persistence in one file that `mdlearn.load` reads.

    The file is complete or not there: it is written beside `path`, brought to disk, then renamed. A crash leaves an
    older file of that name as it was.

    `model`: any fitted model, except one with a callable kernel; `path`: file to write, by this exact name;
    conventionally ``*.npz``; `notes`: plain values that loading gives back (the command line keeps there how
    it read the data). Raises ValueError for a callable kernel, or labels or parameters that are not numbers or strings.
    Raises OSError when the file cannot be written.
    """
    target = output_file_target(path)
    header, arrays = encode_model(model, dict(notes or {}))
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), np.uint8)
    if text.nbytes + NPY_HEADER_BYTES > HEADER_BYTES_LIMIT:
        raise ValueError(
            f"a model whose names, parameters and history take {text.nbytes / 1e6:.3g} MB of text cannot be saved "
            f"({HEADER_BYTES_LIMIT / 1e6:.3g} MB at most); fit with shorter column names or fewer reports (max_iter)"
        )
    members = {"header": text, "digest": _model_file_digest(text, arrays), **arrays}
    replace_file(target, lambda file: archive.write_archive(file, members))


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as the files of persistent models do, of whatever format version."""
    try:
        with open_model_file(path) as file:
            _read_model_header(ArchiveMembers(file).take("header", HEADER_BYTES_LIMIT))
    except FutureFormat:
        return True
    except (UnreadableModel, KeyError, OSError, ValueError):
        return False
    return True


def _model_file_digest(text: np.ndarray, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Digest of a persistent model: SHA-256 of the header, then of the arrays in order, each in its memory order."""
    total = hashlib.sha256(text.tobytes())
    for array in arrays.values():
        flat = array.ravel() if array.flags.c_contiguous else array.T.ravel()
        total.update(b"C" if array.flags.c_contiguous else b"F")
        total.update(flat.view(np.uint8).data)
    return np.frombuffer(total.digest(), np.uint8)


def open_model_file(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open the file of a persistent model; OSError for no regular file, such as a pipe or a device."""
    # Without O_NONBLOCK, a pipe that nobody writes to would keep us waiting.
    extra = getattr(os, "O_NONBLOCK", 0)
    file = open(os.fspath(path), "rb", opener=lambda name, flags: os.open(name, flags | extra))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{shown_model_path(path)} is not a regular file; give the path of a model file")
    return file


def read_model_file(file: io.BufferedReader) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read header and arrays of a persistent model's open file; UnreadableModel where they do not fit its digest."""
    members = ArchiveMembers(file)
    header = _read_model_header(text := members.take("header", HEADER_BYTES_LIMIT))
    listed = header["arrays"]
    if not isinstance(listed, dict):
        raise UnreadableModel("its header lists no arrays")
    digest, arrays = members.take("digest"), {}
    for name, (dtype, shape) in listed.items():
        arrays[name] = array = members.take(name)
        if array.dtype.str != dtype or list(array.shape) != shape:
            raise UnreadableModel(f"its array {name!r} is not the one that its header describes")
    members.finish()
    if not np.array_equal(digest, _model_file_digest(text, arrays)):
        raise UnreadableModel("it was changed after it was saved")
    return header, arrays


def _read_model_header(text: np.ndarray) -> dict[str, Any]:
    """Read a persistent model's header from its text; FutureFormat where a later version wrote it."""
    if text.dtype != np.uint8 or text.ndim != 1:
        raise UnreadableModel("its header is not text")
    memory.require(HEADER_EXPANSION * text.nbytes, "the header of this model file", "load it on a larger machine")
    header = json.loads(text.tobytes().decode(), object_pairs_hook=_header_object, parse_constant=_refuse_constant)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise UnreadableModel("it is not a model file of mdlearn")
    version = header["version"]
    if type(version) is not int or version < 1:
        raise UnreadableModel(f"its format version is {version!r}")
    if version > VERSION:
        raise FutureFormat(
            f"it has format {version}, and this version reads formats up to {VERSION}; upgrade mdlearn (the file was "
            f"written by mdlearn {header.get('written_by')})"
        )
    return header


def _header_object(pairs: list[tuple[str, Any]]) -> Any:
    """Value of an object in a persistent model's header: a mapping, or a number that JSON lacks."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise UnreadableModel("its header gives a name twice")
    if found.keys() != {"number"}:
        return found
    if found["number"] not in ("inf", "-inf", "nan"):
        raise UnreadableModel("its header holds a number that is none")
    return float(found["number"])


def _refuse_constant(name: str) -> Any:
    """Refuse a constant in a persistent model's header that JSON lacks: raise UnreadableModel."""
    raise UnreadableModel(f"its header holds {name}, which JSON lacks")


def shown_model_path(path: str | os.PathLike[str]) -> str:
    """Path of a persistent model as text, for messages."""
    return os.fsdecode(os.fspath(path))


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
    names = [*CERTIFICATE, DISTANCE, *([VOUCHED_BY] if record.vouched_by else [])]
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
