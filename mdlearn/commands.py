"""``python -m mdlearn fit`` and ``predict``: models from and for svmlight files."""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from mdlearn.api import fit
from mdlearn.model.model import Model
from mdlearn.model.persistence import check_target, save
from mdlearn.plugins.files import load_with_notes

EXACT = 2.0**53
"""Integers below this are exact in float64."""
QUOTED = 120
"""Characters of a reader's message that are shown."""


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a svmlight file.

    Attributes
    ----------
    X : csr_matrix of shape (m, d)
    y : ndarray of shape (m,)
        Labels; integers where all are.
    zero_based : bool
        Whether the first column has index 0 in the file.
    """

    X: Any
    y: np.ndarray
    zero_based: bool


def run_fit(given: argparse.Namespace) -> int:
    """Fit a model on a file, print what it is worth, save it."""
    check_target(given.output)  # before the work, not after
    table = read_svmlight(given.data, None, np.float32 if given.float32 else np.float64)
    if table.X.nnz == 0:
        raise ValueError(f"{given.data} holds labels only; a row is a label followed by column:value pairs")
    X = with_columns(table.X, given.features, given.data) if given.features is not None else table.X
    if given.verbose:
        print(f"read {given.data}: {X.shape[0]} rows, {X.shape[1]} columns, {X.nnz} values", file=sys.stderr)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(
            given.objective,
            X,
            table.y,
            solver=given.solver,
            solver_options=dict(given.solver_option),
            kernel=given.kernel,
            bias=given.bias,
            class_weight=given.class_weight,
            tol=given.tol,
            max_iter=given.max_iter,
            time_limit=given.time_limit,
            random_state=given.seed,
            n_threads=given.threads,
            verbose=given.verbose,
            **dict(given.param),
        )
    seconds = time.perf_counter() - started
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    # How the columns were counted and the numbers rounded has to be the same at predict.
    save(model, given.output, {"zero_based": table.zero_based, "float32": given.float32})
    proof = model.certificate
    lines = {
        "data": f"{given.data}: {X.shape[0]} rows, {X.shape[1]} columns, {len(model.classes_) or 'no'} labels",
        "model": f"{model.objective}, " + ", ".join(map(_setting, model.params.items())),
        "kernel, bias": f"{model.kernel.name}, {model.bias}",
        "engine": f"{model.solver} ({model.solver_reason})",
        "objective": f"{proof.objective:.10g}",
        "lower bound": f"{proof.lower_bound:.10g}",
        "relative gap": f"{proof.gap:.3g} ({proof.kind}; tol {proof.tol:g})",
        "converged": "yes" if proof.converged else "no",
        "iterations": f"{model.n_iter}",
        "seconds": f"{seconds:.3f}",
        f"training {model.measure}": f"{model.score(X, table.y):.6g}",
        "saved to": given.output,
    }
    print("\n".join(f"{title + ':':<19}{text}" for title, text in lines.items()))
    return 0


def run_predict(given: argparse.Namespace) -> int:
    """Predict the rows of a file with a saved model; one line per row."""
    model, notes = load_with_notes(given.model)
    table = read_svmlight(given.data, notes.get("zero_based"), np.float32 if notes.get("float32") else np.float64)
    X = with_columns(table.X, model.n_features_in_, given.data)
    predicted = model.predict(X)
    if given.scores:
        scores = model.decision_function(X).reshape(X.shape[0], -1)
        lines = [" ".join(map(repr, row)) for row in scores.tolist()]
    else:
        lines = [str(label) for label in predicted.tolist()]
    text = "\n".join(lines) + "\n"
    if given.output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        with open(given.output, "w", encoding="utf-8") as file:
            file.write(text)
    # On standard output, lines of predictions stay alone.
    told = accuracy(model, predicted, table.y) if len(model.classes_) else f"R^2: {model.score(X, table.y):.6g}"
    print(told, file=sys.stderr if given.output is None else sys.stdout)
    return 0


def accuracy(model: Model, predicted: np.ndarray, y: np.ndarray) -> str:
    """One line: the share of right predictions, if the labels of the file are the model's."""
    numbers = model.classes_.dtype.kind in "biuf"
    known = np.isin(y, model.classes_) if numbers else np.zeros(y.shape[0], dtype=bool)
    if not known.any():
        return "accuracy: not known; the labels of the file are not those of the model"
    right = int((predicted == y).sum())
    strange = int((~known).sum())
    note = f"; {strange} have a label that the model does not know" if strange else ""
    return f"accuracy: {right / y.shape[0]:.6g} ({right} of {y.shape[0]} rows{note})"


def read_svmlight(path: str, zero_based: bool | None, dtype: Any) -> Table:
    """Read a svmlight file, packed by gzip (.gz) or bzip2 (.bz2) or not.

    Parameters
    ----------
    path : str
    zero_based : bool or None
        Whether columns are counted from 0; None: exactly if index 0 occurs.
    dtype : float32 or float64
        Type of the values.

    Raises
    ------
    ImportError
        Without scikit-learn, whose reader does the work.
    ValueError, OSError
        One sentence about what is wrong with the file.
    """
    try:
        from sklearn.datasets import load_svmlight_file
    except ImportError as error:
        raise ImportError(
            f'reading svmlight files needs scikit-learn ({error}); run: pip install "mdlearn[sklearn]"'
        ) from None
    from scipy.sparse import csr_matrix

    with _open(path) as file:
        try:
            A, labels = load_svmlight_file(_Lines(file), dtype=dtype, zero_based=True)
        except (ValueError, OverflowError, EOFError, zlib.error, OSError) as error:
            # The reader quotes what it stumbles over: in a binary file, that can be the whole of it.
            raise ValueError(f"{path} cannot be read as a svmlight file: {str(error)[:QUOTED]}") from None
    if A.shape[0] == 0:
        raise ValueError(f"{path} holds no rows; a row is a label followed by column:value pairs")
    first = int(A.indices.min()) if A.nnz else 1
    if zero_based is False and first == 0:
        raise ValueError(f"{path} counts columns from 0, but the model was fitted on a file that counts from 1")
    based = first == 0 if zero_based is None else zero_based
    shift = 0 if based else 1
    width = max(1, A.shape[1] - shift)
    X = csr_matrix((A.data, A.indices - shift, A.indptr), shape=(A.shape[0], width))
    if np.isfinite(labels).all() and (labels == np.rint(labels)).all() and np.abs(labels).max() < EXACT:
        labels = labels.astype(np.int64)
    return Table(X, labels, based)


def with_columns(X: Any, width: int, path: str) -> Any:
    """Return X with exactly `width` columns: empty ones are added, surplus ones dropped if they are empty."""
    from scipy.sparse import csr_matrix

    if X.shape[1] <= width:
        return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    surplus = X.indices[X.data != 0]
    needed = int(surplus.max()) + 1 if surplus.size else 0
    if needed > width:
        raise ValueError(f"{path} has {needed} columns, but {width} are expected")
    return X[:, :width].tocsr()


class _Lines:
    """Lines handed out by Python code, so that Ctrl-C works while compiled code reads a large file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.read = file.read
        self.file = file

    def __iter__(self) -> Iterator[bytes]:
        for line in self.file:  # noqa: UP028  (`yield from` would not return to the interpreter's loop)
            yield line


def _setting(item: tuple[str, Any]) -> str:
    name, value = item
    return f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"


def _open(path: str) -> Any:
    suffix = os.path.splitext(path)[1]
    if suffix == ".gz":
        import gzip

        return gzip.open(path, "rb")
    if suffix == ".bz2":
        import bz2

        return bz2.open(path, "rb")
    return open(path, "rb")
