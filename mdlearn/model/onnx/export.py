"""Models as ONNX: label, decision values and probabilities, in float64 whatever the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn.model.model import Model
from mdlearn.model.onnx.graph import Graph, checked_opset, finished
from mdlearn.model.onnx.scores import check_exportable, decision_values


def export(model: Model, target_opset: int | None = None) -> Any:
    """Return the ModelProto of a model; see `Model.to_onnx`."""
    graph = Graph(checked_opset(target_opset))
    check_exportable(model)
    dtype, k = model.intercept_.dtype, model.classes_.shape[0]
    rows = "X" if dtype == np.float64 else graph.cast("X", np.float64)
    F = decision_values(graph, model, rows)
    columns = None if k <= 2 else k
    given = ("X", dtype, model.n_features_in_)
    if k == 0:
        _result(graph, _flat(graph, F), dtype, "value")
        return finished(graph, given, {"value": (dtype, None)}, repr(model))
    classes = exported_classes(model)
    add_label(graph, F, classes, "label")
    _result(graph, F if k > 2 else _flat(graph, F), dtype, "scores")
    results = {"label": (None if classes.dtype.kind == "U" else classes.dtype, None), "scores": (dtype, columns)}
    if hasattr(model, "predict_proba"):
        _result(graph, probabilities(graph, F, k), dtype, "probabilities")
        results["probabilities"] = (dtype, k)
    return finished(graph, given, results, repr(model))


def exported_classes(model: Model) -> np.ndarray:
    """Labels as ONNX can hold them: int64, bool, float64 or strings; ValueError for others."""
    classes = model.classes_
    if classes.dtype.kind == "O" and all(isinstance(label, str) for label in classes.tolist()):
        classes = classes.astype(str)
    if classes.dtype.kind in "Ub":
        return classes
    if classes.dtype.kind in "iu" and int(classes[-1]) <= np.iinfo(np.int64).max:
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    raise ValueError(f"labels of dtype {classes.dtype} cannot be exported; fit with integers, booleans or strings")


def add_label(graph: Graph, F: str, classes: np.ndarray, output: str) -> None:
    """Add the labels (n,) that scores give: f = 0 is the second label; ties go to the first class."""
    if classes.shape[0] == 2:
        positive = graph.node("Not", graph.node("Less", _flat(graph, F), graph.constant(0.0)))
        codes = graph.cast(positive, np.int64)
    else:
        codes = graph.node("ArgMax", F, axis=1, keepdims=0, select_last_index=0)
    graph.node("Gather", graph.constant(classes), codes, axis=0, output=output)


def both_scores(graph: Graph, F: str, k: int) -> str:
    """Scores of every class (n, k); -f and f for two."""
    return F if k > 2 else graph.node("Concat", graph.node("Neg", F), F, axis=1)


def probabilities(graph: Graph, F: str, k: int) -> str:
    """sigma(f) of every class over their sum (n, k), by logarithms."""
    f = both_scores(graph, F, k)
    # ln sigma(f) = min(f, 0) - ln(1 + exp(-|f|)): onnxruntime lacks Softplus of newer opsets.
    small = graph.node("Exp", graph.node("Neg", graph.node("Abs", f)))
    below = graph.node("Log", graph.node("Add", small, graph.constant(1.0)))
    logs = graph.node("Sub", graph.node("Min", f, graph.constant(0.0)), below)
    return graph.node("Softmax", logs, axis=1)


def _flat(graph: Graph, F: str) -> str:
    return graph.node("Reshape", F, graph.whole(-1))


def _result(graph: Graph, value: str, dtype: np.dtype[Any], output: str) -> None:
    """Name a result, in the type of the model."""
    if dtype == np.float64:
        graph.node("Identity", value, output=output)
    else:
        graph.cast(value, dtype, output)
