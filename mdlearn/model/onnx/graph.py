"""Building an ONNX graph: nodes and constants by name, in an order that runs, and the model file around them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

OLDEST_OPSET, USUAL_OPSET = 13, 18
"""First opset whose operators are used here, and the one that is written unless another is asked for."""
CONSTANT_BYTES = 2_000_000_000
"""Bytes of constants; a protobuf message holds 2 GiB in all."""


class OnnxGraph:
    """ONNX graph under construction, from one input; each method returns the name of the node that it adds.

    `opset`: version of the operators; `nodes`, `constants`: NodeProto and TensorProto, in the order in which they were
    added.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._bytes = 0

    def name(self, stem: str) -> str:
        """A name that nothing else has."""
        return f"{stem.lower()}_{len(self.nodes) + len(self.constants)}"

    def node(self, operator: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output, of this name or a new one; inputs that are no names become constants."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        return self.several(operator, names, [output or self.name(operator)], **attributes)[0]

    def several(self, operator: str, inputs: Sequence[str], outputs: list[str], **attributes: Any) -> list[str]:
        """Add a node with several outputs, of these names."""
        from onnx import helper

        self.nodes.append(helper.make_node(operator, list(inputs), outputs, name=f"n{len(self.nodes)}", **attributes))
        return outputs

    def constant(self, value: Any) -> str:
        """Add an array of numbers or strings; ValueError where all together are too large for an ONNX file."""
        array = np.asarray(value)
        self.require(array.nbytes)
        self._bytes += array.nbytes
        return self.initializer(self.name("constant"), array)

    def require(self, n_bytes: float) -> None:
        """Raise ValueError unless constants of this size still fit."""
        if self._bytes + n_bytes > CONSTANT_BYTES:
            raise ValueError(
                f"this model needs more than {CONSTANT_BYTES / 1e9:g} GB of constants, which an ONNX file cannot hold; "
                "fit with fewer rows or columns, or with landmarks"
            )

    def initializer(self, name: str, array: np.ndarray) -> str:
        """Add an array under a name."""
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(array.astype(object) if array.dtype.kind == "U" else array, name))
        return name

    def whole(self, *values: int) -> str:
        """Add a vector of integers: axes or a shape."""
        return self.constant(np.array(values, dtype=np.int64))

    def cast(self, value: str, dtype: Any, output: str | None = None) -> str:
        """A tensor as another type."""
        return self.node("Cast", value, to=onnx_tensor_type(dtype), output=output)

    def reduced(self, operator: str, value: str, axis: int, keep: bool = False) -> str:
        """A reduction along one axis."""
        if self.opset >= 18 or operator == "ReduceSum":
            return self.node(operator, value, self.whole(axis), keepdims=int(keep))
        return self.node(operator, value, axes=[axis], keepdims=int(keep))

    def product(self, value: str, matrix: np.ndarray) -> str:
        """value @ matrix, in float64."""
        return self.node("MatMul", value, self.constant(np.ascontiguousarray(matrix, dtype=np.float64)))


def onnx_tensor_type(dtype: Any) -> int:
    """Number by which an ONNX graph denotes a dtype."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def onnx_graph_package() -> Any:
    """Import the package onnx to make a graph; ImportError that says how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError('exporting to ONNX needs the package onnx; pip install "mdlearn[onnx]"') from error
    return onnx


def checked_graph_opset(given: Any) -> int:
    """Opset of an ONNX graph: the one asked for, or the usual one; ValueError for one that cannot be written."""
    newest = int(onnx_graph_package().defs.onnx_opset_version())
    if given is None:
        return USUAL_OPSET
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or not OLDEST_OPSET <= given <= newest:
        raise ValueError(f"target_opset needs to be an integer from {OLDEST_OPSET} to {newest}; got {given!r}")
    return int(given)


def onnx_graph_model(
    graph: OnnxGraph, given: tuple[str, Any, int], results: dict[str, tuple[Any, int | None]], title: str
) -> Any:
    """ModelProto of an ONNX graph, checked, with the shapes of everything in between.

    `given` is the input's name, dtype and number of columns; `results` the outputs' dtypes (None: strings) and numbers
    of columns (None: vectors).
    """
    from onnx import TensorProto, checker, helper, shape_inference

    def described(name: str, dtype: Any, columns: int | None) -> Any:
        kind = TensorProto.STRING if dtype is None else onnx_tensor_type(dtype)
        return helper.make_tensor_value_info(name, kind, ["n"] if columns is None else ["n", columns])

    outputs = [described(name, *about) for name, about in results.items()]
    body = helper.make_graph(graph.nodes, "mdlearn", [described(*given)], outputs, graph.constants)
    opset = helper.make_operatorsetid("", graph.opset)
    made = helper.make_model(
        body,
        opset_imports=[opset],
        ir_version=helper.find_min_ir_version_for([opset]),
        producer_name="mdlearn",
        producer_version=sys.modules["mdlearn"].__version__,
        doc_string=title,
    )
    checker.check_model(made, full_check=True)
    return shape_inference.infer_shapes(made, check_type=True, strict_mode=True, data_prop=True)
