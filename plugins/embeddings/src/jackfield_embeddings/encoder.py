"""The model's encoder as a graph for onnxruntime, with products of 8-bit integers.

The package's model file stores 8-bit weights, but its graph converts them to 32-bit numbers, and onnxruntime
keeps those: they take 90 MB, and so all products are of 32-bit numbers. The graph built here uses the stored
weights unchanged and rounds the other factor of each product to 8 bits as well, which takes half the time:

- The input of the attention has a few dimensions far larger than the others. It is rounded in blocks of 32,
  each with its own scale, because one scale for all would erase the small dimensions.
- All other products have one scale for each token, which is faster.

It also uses the fused operations of onnxruntime, which does not recognise the attention in the file's graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, DIMENSIONS = 6, 12, 384
INPUT, OUTPUT = "input_ids", "mean"
_FUSED = "com.microsoft"
_BLOCK = 32
_ZERO = 128
"""The value that represents 0 in products by block, whose weights are unsigned."""

_EPSILON = 1e-12
_EMBEDDINGS = "inner.embeddings."
_OPSET, _IR = 18, 9


class Weights:
    """The tensors of a model file."""

    def __init__(self, content: bytes) -> None:
        graph = onnx.load_model_from_string(content).graph
        self._tensors = {each.name: each for each in graph.initializer}
        products = (each.input[1] for each in graph.node if each.op_type == "MatMul")
        # In the order of use: query, key, value, output, up and down for each layer.
        self._matrices = [name for name in products if f"{name}_q" in self._tensors]

    def tensor(self, name: str) -> NDArray[Any]:
        """Return a tensor as stored in the file."""
        return numpy_helper.to_array(self._tensors[name])

    def matrices(self, layer: int) -> list[Matrix]:
        """Return the six matrices of a layer."""
        names = self._matrices[6 * layer : 6 * layer + 6]
        return [Matrix(self.tensor(f"{each}_q"), self.tensor(f"{each}_scale").reshape(-1)) for each in names]


class Matrix(NamedTuple):
    """8-bit weights, and the scale of each column."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]

    @classmethod
    def side_by_side(cls, parts: Sequence[Matrix]) -> Matrix:
        """Join matrices, so that one product replaces several."""
        return cls(
            np.concatenate([each.values for each in parts], axis=1),
            np.concatenate([each.scales for each in parts]),
        )


class _Graph:
    """Nodes and constants under construction; each method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, value: NDArray[Any]) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(
        self, operation: str, *inputs: str, domain: str = "", result: str = "", **attributes: Any
    ) -> str:
        name = result or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, inputs, [name], domain=domain, **attributes))
        return name

    def split(self, value: str, parts: int) -> list[str]:
        names = [f"value{len(self.nodes)}_{part}" for part in range(parts)]
        self.nodes.append(helper.make_node("Split", [value], names, axis=2, num_outputs=parts))
        return names

    def product_by_block(self, value: str, matrix: Matrix, bias: NDArray[np.float32]) -> str:
        """Multiply by a matrix and add the bias; every block of 32 dimensions has its own scale."""
        rows, columns = matrix.values.shape
        unsigned = (matrix.values.T.astype(np.int16) + _ZERO).astype(np.uint8)
        blocks = unsigned.reshape(columns, rows // _BLOCK, _BLOCK)
        scales = np.repeat(matrix.scales[:, None], rows // _BLOCK, axis=1)
        inputs = value, self.constant(blocks), self.constant(scales), "", "", self.constant(bias)
        return self.node(
            "MatMulNBits",
            *inputs,
            domain=_FUSED,
            K=rows,
            N=columns,
            bits=8,
            block_size=_BLOCK,
            accuracy_level=4,  # Rounds the other factor to 8 bits.
        )

    def product_by_token(self, value: str, matrix: Matrix) -> str:
        """Multiply by a matrix; every token has its own scale."""
        # The operation has one scale for all tokens, so each token is first scaled to at most 1, then back.
        largest = self.node(
            "ReduceMax", self.node("Abs", value), self.constant(np.array([2], np.int64)), keepdims=1
        )
        product = self.node(
            "DynamicQuantizeMatMul",
            self.node("Div", value, largest),
            self.constant(matrix.values),
            self.constant(matrix.scales),
            domain=_FUSED,
        )
        return self.node("Mul", product, largest)

    def added_and_normalised(self, value: str, change: str, weights: Weights, name: str) -> str:
        """Add the change and its bias to a value, and normalise the sum."""
        return self.node(
            "SkipLayerNormalization",
            value,
            change,
            *(
                self.constant(weights.tensor(name + part))
                for part in ("LayerNorm.weight", "LayerNorm.bias", "dense.bias")
            ),
            domain=_FUSED,
            epsilon=_EPSILON,
        )


def encoder(content: bytes) -> bytes:
    """Build the graph from a model file: token ids of one text in, the mean of their states out."""
    weights, graph = Weights(content), _Graph()
    value = _embedded(graph, weights)
    for layer in range(LAYERS):
        value = _layer(graph, weights, layer, value)
    graph.node("ReduceMean", value, graph.constant(np.array([1], np.int64)), result=OUTPUT, keepdims=0)
    built = helper.make_graph(
        graph.nodes,
        "encoder",
        [helper.make_tensor_value_info(INPUT, TensorProto.INT64, [1, "tokens"])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, DIMENSIONS])],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
    serialised: bytes = helper.make_model(built, opset_imports=opsets, ir_version=_IR).SerializeToString()
    return serialised


def _embedded(graph: _Graph, weights: Weights) -> str:
    """Add nodes that convert tokens and positions to vectors."""
    word, position = f"{_EMBEDDINGS}word_embeddings.weight", f"{_EMBEDDINGS}position_embeddings.weight"
    rows = graph.node("Gather", graph.constant(weights.tensor(f"{word}_q")), INPUT)
    scales = graph.node("Gather", graph.constant(weights.tensor(f"{word}_scale")), INPUT)
    words = graph.node("Mul", graph.node("Cast", rows, to=TensorProto.FLOAT), scales)
    positions = weights.tensor(f"{position}_q") * weights.tensor(f"{position}_scale")
    positions = positions + weights.tensor(f"{_EMBEDDINGS}token_type_embeddings.weight")[0]
    used = graph.node(
        "Slice",
        graph.constant(positions.astype(np.float32)[None]),
        graph.constant(np.array([0], np.int64)),
        graph.node("Shape", INPUT, start=1, end=2),
        graph.constant(np.array([1], np.int64)),
    )
    return graph.node(
        "LayerNormalization",
        graph.node("Add", words, used),
        *(graph.constant(weights.tensor(f"{_EMBEDDINGS}LayerNorm.{part}")) for part in ("weight", "bias")),
        axis=-1,
        epsilon=_EPSILON,
    )


def _layer(graph: _Graph, weights: Weights, layer: int, value: str) -> str:
    name = f"inner.encoder.layer.{layer}."
    *attention, output, up, down = weights.matrices(layer)
    biases = [weights.tensor(f"{name}attention.self.{part}.bias") for part in ("query", "key", "value")]
    joined = graph.product_by_block(value, Matrix.side_by_side(attention), np.concatenate(biases))
    attended = graph.node("MultiHeadAttention", *graph.split(joined, 3), domain=_FUSED, num_heads=HEADS)
    change = graph.product_by_token(attended, output)
    value = graph.added_and_normalised(value, change, weights, f"{name}attention.output.")
    bias = graph.constant(weights.tensor(f"{name}intermediate.dense.bias"))
    inner = graph.node("BiasGelu", graph.product_by_token(value, up), bias, domain=_FUSED)
    change = graph.product_by_token(inner, down)
    return graph.added_and_normalised(value, change, weights, f"{name}output.")
