"""Export of models to ONNX: label, decision values and probabilities, in float64 whatever the rows are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.data.clustering.distances import NEAREST
from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.features.kernel_approximation import KernelApproximationMap
from mdlearn.data.features.kernels import PARAMETERS, Kernel
from mdlearn.data.features.landmark_map import LandmarkMap
from mdlearn.data.rows.rows import COPY_BYTES, DenseRows
from mdlearn.model.class_decisions import PAIRWISE, class_decision_pairs
from mdlearn.model.file.schema import BUILT_IN_TASKS
from mdlearn.model.onnx.graph import OnnxGraph, checked_graph_opset, onnx_graph_model
from mdlearn.model.record import FittedRecord

REMOTE_SQUARES = 1e4
"""Squared lengths, in units of 1 / gamma, beyond which distances are summed from differences, at n m d numbers."""
CHOICE = "fit with kernel='precomputed', or with a built-in choice by name"


def export(model: FittedRecord, target_opset: int | None = None) -> Any:
    """Export a model to ONNX: return its ModelProto; see `Model.to_onnx`."""
    graph = OnnxGraph(checked_graph_opset(target_opset))
    check_exportable(model)
    dtype, k = model.intercept_.dtype, model.classes_.shape[0]
    rows = "X" if dtype == np.float64 else graph.cast("X", np.float64)
    F = export_decision_values(graph, model, rows)
    columns = None if k <= 2 else k
    given = ("X", dtype, model.n_features_in_)
    if k == 0:
        _export_result(graph, _export_flat_value(graph, F), dtype, "value")
        return onnx_graph_model(graph, given, {"value": (dtype, None)}, repr(model))
    classes = exported_onnx_classes(model)
    export_label(graph, F, classes, "label")
    _export_result(graph, F if k > 2 else _export_flat_value(graph, F), dtype, "scores")
    results = {"label": (None if classes.dtype.kind == "U" else classes.dtype, None), "scores": (dtype, columns)}
    if hasattr(model, "predict_proba"):
        _export_result(graph, export_probabilities(graph, F, k), dtype, "probabilities")
        results["probabilities"] = (dtype, k)
    return onnx_graph_model(graph, given, results, repr(model))


def exported_onnx_classes(model: FittedRecord) -> np.ndarray:
    """Labels as an ONNX export can hold them: int64, bool, float64 or strings; ValueError for others."""
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


def export_label(graph: OnnxGraph, F: str, classes: np.ndarray, output: str) -> None:
    """Add the labels (n,) of scores to an ONNX export: f = 0 is the second label; ties go to the first class."""
    if classes.shape[0] == 2:
        positive = graph.node("Not", graph.node("Less", _export_flat_value(graph, F), 0.0))
        codes = graph.cast(positive, np.int64)
    else:
        codes = graph.node("ArgMax", F, axis=1, keepdims=0, select_last_index=0)
    graph.node("Gather", classes, codes, axis=0, output=output)


def export_class_scores(graph: OnnxGraph, F: str, k: int) -> str:
    """Add scores of every class (n, k) to an ONNX export; -f and f for two."""
    return F if k > 2 else graph.node("Concat", graph.node("Neg", F), F, axis=1)


def export_probabilities(graph: OnnxGraph, F: str, k: int) -> str:
    """Add class probabilities (n, k) to an ONNX export: sigma(f) over their sum, by logarithms."""
    f = export_class_scores(graph, F, k)
    # ln sigma(f) = min(f, 0) - ln(1 + exp(-|f|)): onnxruntime lacks Softplus of newer opsets.
    small = graph.node("Exp", graph.node("Neg", graph.node("Abs", f)))
    below = graph.node("Log", graph.node("Add", small, 1.0))
    logs = graph.node("Sub", graph.node("Min", f, 0.0), below)
    return graph.node("Softmax", logs, axis=1)


def _export_flat_value(graph: OnnxGraph, F: str) -> str:
    """Add a node to an ONNX export that makes a value one-dimensional."""
    return graph.node("Reshape", F, graph.whole(-1))


def _export_result(graph: OnnxGraph, value: str, dtype: np.dtype[Any], output: str) -> None:
    """Add a named result to an ONNX export, in the type of the model."""
    if dtype == np.float64:
        graph.node("Identity", value, output=output)
    else:
        graph.cast(value, dtype, output)


def check_exportable(model: FittedRecord) -> None:
    """Raise ValueError for a model that ONNX export refuses: it needs code to predict."""
    if model.task not in BUILT_IN_TASKS:
        raise ValueError(
            f"models of the task {model.task!r} cannot be exported; export knows {' and '.join(BUILT_IN_TASKS)}"
        )
    kernel = model.kernel
    if kernel.name == "callable":
        raise ValueError(f"a model with a callable kernel cannot be exported, as ONNX holds no Python code; {CHOICE}")
    if kernel.name not in PARAMETERS:
        raise ValueError(f"a model with the kernel {kernel.name!r} of a plugin cannot be exported to ONNX; {CHOICE}")
    if model._map is not None:
        check_exportable_map(model._map, model.objective)


def check_exportable_map(place: FeatureMap, name: str) -> None:
    """Raise ValueError for features that ONNX export refuses: they need code; `name` is that of their owner."""
    if isinstance(place, KernelApproximationMap):
        return
    if not isinstance(place, LandmarkMap):
        raise ValueError(f"features of {name!r} ({type(place).__name__}) cannot be exported to ONNX")
    if place.projection.function is not None:
        raise ValueError(f"{name!r} with a callable projection cannot be exported to ONNX; {CHOICE}")


def export_decision_values(graph: OnnxGraph, model: FittedRecord, rows: str) -> str:
    """Add decision values of float64 rows to an ONNX export: (n, 1) for two classes and regression, (n, k) else."""
    F = graph.node("Add", _export_decision_sums(graph, model, rows), model.intercept_.astype(np.float64))
    k = model.classes_.shape[0]
    if k <= 2 or model.multiclass not in PAIRWISE:
        return F
    if model.multiclass == "ovo":
        return _export_votes(graph, F, k)
    return _export_memberships(graph, F, k, "ReduceMin" if model.multiclass == "fuzzy-min" else "ReduceMean")


def _export_decision_sums(graph: OnnxGraph, model: FittedRecord, rows: str) -> str:
    """Add decision values without intercept to an ONNX export, shape (n, p)."""
    if model._map is not None:
        return _export_values_over_features(graph, model, rows)
    if model._coef is not None:
        return graph.product(rows, model._coef.T)
    if model._rows is None:
        return graph.product(rows, model.dual_coef_.T)
    graph.require(8.0 * model._rows.shape[0] * model._rows.shape[1])  # sparse ones become dense
    K = _export_kernel_values(graph, model.kernel, rows, model._rows.block(slice(None)))
    return graph.product(K, model.dual_coef_[:, model.support_].T)


def _export_kernel_values(graph: OnnxGraph, kernel: Kernel, rows: str, others: np.ndarray) -> str:
    """Add kernel values (n, m) of rows and an array's rows to an ONNX export, as `Kernel.block` makes them."""
    if kernel.name != "rbf":
        if kernel.name == "linear":
            return graph.product(rows, others.T)
        # onnxruntime would make a factor behind a product one of float32.
        K = graph.product(rows, float(kernel.params["gamma"]) * others.T)
        K = graph.node("Add", K, float(kernel.params["coef0"]))
        return graph.node("Pow", K, float(kernel.params["degree"]))
    gamma = float(kernel.params["gamma"])
    if kernel.centre is not None:
        centre = kernel.centre.astype(np.float64)
        rows, others = graph.node("Sub", rows, centre), others - centre
    lengths = gamma * DenseRows(others).squares()
    if lengths.max(initial=0.0) > REMOTE_SQUARES:
        away = graph.node("Sub", graph.node("Unsqueeze", rows, graph.whole(1)), others)
        D = graph.reduced("ReduceSum", graph.node("Mul", away, away), 2)
        return graph.node("Exp", graph.node("Mul", D, -gamma))
    squares = graph.reduced("ReduceSum", graph.node("Mul", rows, rows), 1, keep=True)
    K = graph.product(rows, 2.0 * gamma * others.T)
    K = graph.node("Sub", K, graph.node("Mul", squares, gamma))
    K = graph.node("Sub", K, lengths)
    return graph.node("Exp", graph.node("Min", K, 0.0))


def _export_values_over_features(graph: OnnxGraph, model: FittedRecord, rows: str) -> str:
    """Add decision values over features of clusters, landmarks or an approximation to an ONNX export."""
    place = model._map
    if isinstance(place, KernelApproximationMap):
        assert model._coef is not None
        K = _export_kernel_values(graph, model.kernel, rows, place.points)
        return graph.product(K, place.combination(model._coef))
    assert isinstance(place, LandmarkMap)
    W = _export_cluster_weights(graph, place, rows)
    if model._coef is None:
        assert model._rows is not None
        placed = place.placed(model._rows)
        mu = _export_kernel_values(graph, place.projection, rows, place.landmarks)
        W = W if place.mix is None else graph.product(W, place.mix)
        K = _export_kernel_values(graph, replace(model.kernel, centre=None), mu, placed.mu)
        K = graph.node("Mul", K, graph.product(W, placed.weights.T))
        return graph.product(K, model.dual_coef_[:, model.support_].T)
    coef = model._coef.astype(np.float64)
    small = 8.0 * coef.shape[0] * place.centers.size <= COPY_BYTES
    table = place.folded(coef) if small else None
    if table is None:
        rows, table = _export_kernel_values(graph, place.projection, rows, place.landmarks), place.shown(coef)
    p, K_, width = table.shape
    each = graph.product(rows, table.transpose(2, 1, 0).reshape(width, K_ * p))
    each = graph.node("Reshape", each, graph.whole(-1, K_, p))
    return graph.reduced("ReduceSum", graph.node("Mul", each, graph.node("Unsqueeze", W, graph.whole(2))), 1)


def export_landmark_features(graph: OnnxGraph, place: LandmarkMap, rows: str) -> str:
    """Add landmark features (n, K L) of float64 rows to an ONNX export, as `LandmarkMap.features` makes them."""
    mu = _export_kernel_values(graph, place.projection, rows, place.landmarks)
    W = _export_cluster_weights(graph, place, rows)
    W = W if place.mix is None else graph.product(W, place.mix)
    blocks = graph.node("Mul", graph.node("Unsqueeze", W, graph.whole(2)), graph.node("Unsqueeze", mu, graph.whole(1)))
    return graph.node("Reshape", blocks, graph.whole(-1, place.width))


def _export_cluster_weights(graph: OnnxGraph, place: LandmarkMap, rows: str) -> str:
    """Add weights (n, K) of rows over clusters to an ONNX export: 1 for the nearest, or shares of the few nearest."""
    shift = place.centers.mean(axis=0)
    centers, K = place.centers - shift, place.centers.shape[0]
    # Squared distances less the square of the row, which changes neither their order nor their differences.
    D = graph.product(graph.node("Sub", rows, shift), -2.0 * centers.T)
    D = graph.node("Add", D, DenseRows(centers).squares())
    numbers = graph.constant(np.arange(K, dtype=np.int64))
    if place.spread is None:
        nearest = graph.node("ArgMin", D, axis=1, keepdims=1)
        return graph.cast(graph.node("Equal", nearest, numbers), np.float64)
    names = [graph.name("near"), graph.name("which")]
    t = graph.whole(min(NEAREST, K))
    near, which = graph.several("TopK", [D, t], names, axis=1, largest=0, sorted=1)
    if place.spread > 0:
        shares = graph.node("Softmax", graph.node("Mul", near, -1.0 / place.spread), axis=1)
    else:
        least = graph.reduced("ReduceMin", near, 1, keep=True)
        shares = graph.cast(graph.node("Equal", near, least), np.float64)
        shares = graph.node("Div", shares, graph.reduced("ReduceSum", shares, 1, keep=True))
    own = graph.node("Equal", graph.node("Unsqueeze", which, graph.whole(2)), numbers)
    spread = graph.node("Mul", graph.cast(own, np.float64), graph.node("Unsqueeze", shares, graph.whole(2)))
    return graph.reduced("ReduceSum", spread, 1)


def _export_votes(graph: OnnxGraph, F: str, k: int) -> str:
    """Add votes with a tie-break to an ONNX export, from the values (n, pairs): see `class_decision_scores`."""
    low, high = (np.eye(k)[[pair[side] for pair in class_decision_pairs(k)]] for side in (0, 1))
    negative = graph.node("Less", F, 0.0)
    against = graph.product(graph.cast(negative, np.float64), low)
    for_ = graph.product(graph.cast(graph.node("Not", negative), np.float64), high)
    total = graph.product(F, high - low)
    size = graph.node("Mul", graph.node("Add", graph.node("Abs", total), 1.0), 3.0)
    return graph.node("Add", graph.node("Add", against, for_), graph.node("Div", total, size))


def _export_memberships(graph: OnnxGraph, F: str, k: int, reduction: str) -> str:
    """Add fuzzy memberships to an ONNX export, from the values (n, pairs): see `class_decision_scores`."""
    pairs = class_decision_pairs(k)
    both = graph.node("Concat", F, graph.node("Neg", F), axis=1)
    # For every class its values of all pairs that it is in: F where it is the high class of a pair, else -F.
    own = [[p + (0 if pair[1] == c else len(pairs)) for p, pair in enumerate(pairs) if c in pair] for c in range(k)]
    values = graph.node("Gather", both, np.array(own, dtype=np.int64), axis=1)
    capped = graph.node("Min", values, 1.0)
    return graph.reduced(reduction, capped, 2)
