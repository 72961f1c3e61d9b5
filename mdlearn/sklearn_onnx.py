"""The estimators of `mdlearn.sklearn` in skl2onnx: after `register_converters()`, ``skl2onnx.to_onnx`` converts them.

They can then be steps of pipelines and parts of what skl2onnx converts else, such as calibrated classifiers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn.model.onnx.export import (
    check_exportable,
    check_exportable_map,
    export_class_scores,
    export_decision_values,
    export_label,
    export_landmark_features,
    export_probabilities,
    exported_onnx_classes,
)
from mdlearn.model.onnx.graph import OLDEST_OPSET, OnnxGraph, onnx_graph_package

CLASSIFIER_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
    "nocl": [True, False],
}


def register_converters() -> None:
    """Tell skl2onnx how to convert the estimators of `mdlearn.sklearn`; may be called again.

    Converted classifiers have the outputs "label" and "probabilities" of skl2onnx. The second one holds probabilities
    where there is `predict_proba`, else decision values of every class (-f and f for two); ``options={id(estimator):
    {"raw_scores": True}}`` asks for decision values in any case, ``"zipmap": False`` for an array.

    Raises
    ------
    ImportError
        Without skl2onnx: pip install "mdlearn[onnx]".

    Examples
    --------
    >>> from skl2onnx import to_onnx  # doctest: +SKIP
    >>> register_converters()  # doctest: +SKIP
    >>> made = to_onnx(pipeline, X[:1], options={"zipmap": False})  # doctest: +SKIP
    """
    onnx_graph_package()
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError('converting estimators needs skl2onnx; pip install "mdlearn[onnx]"') from error
    from sklearn.base import ClassifierMixin

    from mdlearn import sklearn as estimators

    for name in estimators.__all__:
        cls = getattr(estimators, name)
        if issubclass(cls, ClassifierMixin):
            update_registered_converter(
                cls,
                f"Mdlearn{name}",
                _sklearn_onnx_classifier_types,
                _sklearn_onnx_classifier,
                options=CLASSIFIER_OPTIONS,
            )
    update_registered_converter(
        estimators.LandmarkTransformer,
        "MdlearnLandmarkTransformer",
        _sklearn_onnx_transformer_types,
        _sklearn_onnx_transformer,
    )


class SklearnOnnxGraph(OnnxGraph):
    """Nodes of one scikit-learn estimator in skl2onnx's ONNX container for the whole conversion."""

    def __init__(self, scope: Any, container: Any) -> None:
        super().__init__(container.target_opset)
        if self.opset < OLDEST_OPSET:
            raise ValueError(f"mdlearn's estimators need target_opset >= {OLDEST_OPSET}; got {self.opset}")
        self._scope, self._container = scope, container

    def name(self, stem: str) -> str:
        """A name that nothing else in the scope has."""
        return str(self._scope.get_unique_variable_name(f"mdlearn_{stem.lower()}"))

    def several(self, operator: str, inputs: Any, outputs: list[str], **attributes: Any) -> list[str]:
        name = self._scope.get_unique_operator_name(f"Mdlearn{operator}")
        self._container.add_node(operator, list(inputs), outputs, name=name, **attributes)
        return outputs

    def initializer(self, name: str, array: np.ndarray) -> str:
        from onnx import TensorProto, numpy_helper

        if array.dtype.kind == "U":
            coded = [text.encode() for text in array.ravel().tolist()]
            self._container.add_initializer(name, TensorProto.STRING, list(array.shape), coded)
        else:
            self._container.add_initializer(name, None, None, numpy_helper.from_array(array, name))
        return name

    def rows(self, inputs: Any) -> str:
        """The input of an estimator, of one or several tensors, in float64."""
        parts = [self.cast(part.full_name, np.float64) for part in inputs]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)


def _sklearn_onnx_labels(estimator: Any) -> np.ndarray:
    """Labels of an estimator as skl2onnx has them: int64 or strings."""
    # Floats are whole numbers here: scikit-learn's classifiers take no others as labels.
    classes = exported_onnx_classes(estimator.model_)
    return classes if classes.dtype.kind == "U" else classes.astype(np.int64)


def _check_sklearn_onnx_inputs(operator: Any, width: int) -> None:
    """Raise ValueError unless an estimator's inputs have the columns of its fit, as far as their types tell."""
    given = [part.type.shape[1] for part in operator.inputs if len(part.type.shape) > 1 and part.type.shape[1]]
    if len(given) == len(operator.inputs) and sum(given) != width:
        name = type(operator.raw_operator).__name__
        raise ValueError(f"the input has {sum(given)} columns; this {name} was fitted on {width}")


def _sklearn_onnx_dtype(variable: Any) -> Any:
    """Type of a skl2onnx variable: float64 for a tensor of double, else float32."""
    from skl2onnx.common.data_types import DoubleTensorType

    return np.float64 if isinstance(variable.type, DoubleTensorType) else np.float32


def _sklearn_onnx_classifier_types(operator: Any) -> None:
    """Types and shapes of label and scores, for skl2onnx."""
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType, guess_tensor_type

    model, classes = operator.raw_operator.model_, _sklearn_onnx_labels(operator.raw_operator)
    check_exportable(model)
    _check_sklearn_onnx_inputs(operator, model.n_features_in_)
    n, k = operator.inputs[0].get_first_dimension(), classes.shape[0]
    label = (StringTensorType if classes.dtype.kind == "U" else Int64TensorType)([n])
    operator.outputs[0].set_type(label)
    scores = guess_tensor_type(operator.inputs[0].type)
    scores.shape = [n, k]
    operator.outputs[1].set_type(scores)


def _sklearn_onnx_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Nodes of a classifier, for skl2onnx."""
    estimator, graph = operator.raw_operator, SklearnOnnxGraph(scope, container)
    model, k = estimator.model_, estimator.classes_.shape[0]
    F = export_decision_values(graph, model, graph.rows(operator.inputs))
    label, scores = operator.outputs
    export_label(graph, F, _sklearn_onnx_labels(estimator), label.full_name)
    raw = container.get_options(estimator, {"raw_scores": False})["raw_scores"]
    made = (
        export_class_scores(graph, F, k)
        if raw or not hasattr(model, "predict_proba")
        else export_probabilities(graph, F, k)
    )
    graph.cast(made, _sklearn_onnx_dtype(scores), scores.full_name)


def _sklearn_onnx_transformer_types(operator: Any) -> None:
    """Type and shape of landmark features, for skl2onnx."""
    from skl2onnx.common.data_types import guess_tensor_type

    place = operator.raw_operator._map
    check_exportable_map(place, "LandmarkTransformer")
    _check_sklearn_onnx_inputs(operator, place.columns)
    made = guess_tensor_type(operator.inputs[0].type)
    made.shape = [operator.inputs[0].get_first_dimension(), place.width]
    operator.outputs[0].set_type(made)


def _sklearn_onnx_transformer(scope: Any, operator: Any, container: Any) -> None:
    """Nodes of landmark features, for skl2onnx."""
    graph, out = SklearnOnnxGraph(scope, container), operator.outputs[0]
    made = export_landmark_features(graph, operator.raw_operator._map, graph.rows(operator.inputs))
    graph.cast(made, _sklearn_onnx_dtype(out), out.full_name)
