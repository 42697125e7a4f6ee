"""A quantized program as a GraphDef: eight-bit weights, and a FakeQuant wherever the program has codes.

    x ─CONV_2D(int8)─ y
becomes
    x ─FakeQuant─ Conv2D ─BiasAdd─ Relu6 ─FakeQuant─ y,    the weights being  Const(int8) ─Cast─ Mul(scales)

TensorFlow computes with it what the codes stand for; of two equally near codes it may take the other one. Sessions of
ours run it on codes: the nodes carry the mark that the fast engine looks for. What has no weights stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import cached_property
from typing import Any

import numpy as np

from pocketgraph.errors import UsageError, option
from pocketgraph.graph import Graph, Node, Shape, canonical, const, node_name, parse_ref
from pocketgraph.graph.dtype import FLOAT, HALF, INT8, INT32
from pocketgraph.graph.op_traits import PLACEHOLDERS
from pocketgraph.graph.order import reachable, topological
from pocketgraph.kernels.shapes import Inferred, infer
from pocketgraph.litert.lowering import MAY_QUANTIZE
from pocketgraph.litert.operands import attr_text
from pocketgraph.litert.operator_traits import WEIGHT_AXIS
from pocketgraph.litert.program import Operation, Program, Quantization, Value
from pocketgraph.litert.rewriting.weight_folding import LINEAR
from pocketgraph.pages.quantities import listed

ENDINGS = ("/int8", "/float", "/numbers", "/prescribed")
"""Of the names of tensors that are another's in codes, or in plain numbers again."""
LOCATION = b"loc:@"
ADDED = ("/even", "/staggered")
"""Of the names of tensors that the quantizer puts between an input and the first layer."""
CHANGES = {"ADD": "Add", "MUL": "Mul"}
"""The operators that make them, and their nodes."""
WEIGHT_CHANGES = ("depthwise_affine", "cross_layer_equalization", "channel_equalization", "channel_replication",
                  "input_equalization")  # fmt: skip
"""Steps that change what one layer gives and the next one takes; see ``inner_layers``."""
ACTIVATIONS = {"": None, "RELU": "Relu", "RELU6": "Relu6"}


def to_graphdef(program: Program, graph: Graph, outputs: Iterable[str]) -> Graph:
    """The graph with the program's weights and codes in it.

    Args:
        program: with int8 codes, or just int8 weights, and float inputs and outputs.
        graph: the graph that the program was lowered from.
        outputs: the tensors to keep.

    Raises:
        UsageError: the program has something that this form does not hold.
    """
    return _GraphWriter(program, graph).written(list(outputs))


def inner_operations(program: Program, graph: Graph) -> list[str]:
    """The results of operations that stand for a part of a node only, such as those that Softplus is made of.

    There are no nodes that could give their tensors codes, so that they have to stay in float.
    """
    inner = {v for o in program.operations for v in o.outputs if node_name(v.name) not in graph.nodes}
    layers = inner_layers(program, graph)
    return [
        operation.outputs[0].name
        for operation in program.operations
        if any(operation is layer for layer in layers)
        or (operation.code not in LINEAR and any(v in inner for v in (*operation.inputs, *operation.outputs)))
    ]


def inner_layers(program: Program, graph: Graph) -> list[Operation]:
    """Layers that read what no node of the graph gives, such as the planes of a Conv3D: their nodes stay as they are,
    with their weights."""
    given = set(program.inputs)
    found = []
    for operation in program.operations:
        is_layer = operation.code in LINEAR
        data = operation.inputs[LINEAR[operation.code][0]] if is_layer else operation.inputs[0]
        if is_layer and data is not None and data.constant is None and data not in given:
            found.append(operation)
            is_layer = False
        is_added = operation.code in CHANGES and operation.outputs[0].name.endswith(ADDED)
        is_written = is_layer or ((is_added or operation.code in ("QUANTIZE", "DEQUANTIZE")) and data in given)
        given |= {v for v in operation.outputs if is_written or node_name(_plain(v.name)) in graph.nodes}
    return found


def steps_without_place(program: Program, graph: Graph, notify: Callable[[str], None]) -> tuple[str, ...]:
    """The steps that must not change a program with inner layers, whose weights the graph has; those are named."""
    layers = inner_layers(program, graph)
    names = list(dict.fromkeys(name for layer in layers for name in layer.nodes[:1]))
    if not names:
        return ()
    which = f"{listed(names, 1, quoted=True)} {'stays' if len(names) == 1 else 'stay'}"
    notify(f"{which} in float: a graph has no nodes for their codes, which a .tflite file holds")
    return WEIGHT_CHANGES


class _GraphWriter:
    def __init__(self, program: Program, graph: Graph) -> None:
        self.program = program
        self.nodes: dict[str, Node] = dict(graph.nodes)
        self.graph = graph
        self.refs: dict[Value, str] = {}
        """Where each tensor of the program is found in the graph."""
        self.held: dict[tuple[Value, str], str] = {}
        """Where the weights of each kind of layer are: the steps of a loop that is written out share them."""

    def written(self, outputs: list[str]) -> Graph:
        for value in self.program.inputs:
            if value.quantization is not None:
                raise UsageError(
                    "a graph has float inputs and outputs", hint=f"leave {option('io')} out, or write a .tflite file"
                )
            self.refs[value] = self.entering(value)
        inner = {id(operation) for operation in inner_layers(self.program, self.graph)}
        for operation in self.program.operations:
            if operation.code in LINEAR and id(operation) not in inner:
                self.layer(operation)
            elif operation.code in ("QUANTIZE", "DEQUANTIZE"):
                self.conversion(operation)
            else:
                self.other(operation)
        found = self.graph.replace(list(self.nodes.values()))
        kept = reachable(found, [node_name(name) for name in outputs])
        ordered = topological(found.replace([node for node in found if node.name in kept]))
        first = [node_name(value.name) for value in self.program.inputs]  # whoever feeds by place counts on the order
        place = {name: index for index, name in enumerate(first)}
        ordered = [_with_places(node, kept) for node in ordered]
        return found.replace(sorted(ordered, key=lambda node: place.get(node.name, len(first))))

    def entering(self, value: Value) -> str:
        name, port, _ = parse_ref(value.name)
        if self.nodes[name].op not in PLACEHOLDERS:
            if port:
                raise UsageError(f"the tensor '{value.name}' cannot be an input of a graph: it is not its node's first")
            self.nodes[name] = Node(name, "Placeholder", (), {"dtype": value.dtype, "shape": Shape(value.shape)})
        return canonical(value.name)

    def ref(self, value: Value) -> str:
        if value not in self.refs:
            raise UsageError(
                f"the graph has no place for codes of '{value.name}', which the program computes inside of a node",
                hint="write a .tflite file",
            )
        return self.refs[value]

    def add(self, name: str, op: str, inputs: Iterable[str], attrs: dict[str, Any]) -> str:
        """A new node; its name with a number where that is taken."""
        free, count = name, 1
        while free in self.nodes:
            free, count = f"{name}_{count}", count + 1
        self.nodes[free] = Node(free, op, [ref.removesuffix(":0") for ref in inputs], attrs)
        return f"{free}:0"

    def constant(self, name: str, value: Any) -> str:
        node = const(name, value)
        return self.add(name, "Const", (), dict(node.attrs))

    def rounded(self, name: str, source: str, quantization: Quantization) -> str:
        """``source`` on the steps of the codes."""
        scale, zero = quantization.scales[0], quantization.zero_points[0]
        ends = [self.constant(f"{name}/{end}", np.float32((code - zero) * scale))
                for end, code in (("min", -128), ("max", 127))]  # fmt: skip
        return self.add(name, "FakeQuantWithMinMaxVars", [source, *ends], {"num_bits": 8, "narrow_range": False,
                                                                         MAY_QUANTIZE: True})  # fmt: skip

    def conversion(self, operation: Operation) -> None:
        source, result = operation.operands[0], operation.outputs[0]
        if source.constant is not None:  # weights that are expanded when the model is loaded
            return
        if result.quantization is None:
            self.refs[result] = self.ref(source)
        else:
            base = parse_ref(self.ref(source)).name
            self.refs[result] = self.rounded(f"{base}/codes", self.ref(source), result.quantization)

    def named(self, value: Value, source: str) -> None:
        """Gives the tensor's name in the graph to what ``source`` makes, on the steps of codes where it has such."""
        name, port, _ = parse_ref(_plain(value.name))
        if value.quantization is not None:
            source = self.rounded(f"{name}/codes", source, value.quantization)
        self.refs[value] = source  # readers go straight to the codes: the engine looks for them next to the operation
        while name in self.graph and not port:
            node = self.graph[name]
            self.nodes[name] = Node(name, "Identity", [source.removesuffix(":0")], {"T": FLOAT})
            if node.op not in ("Identity", "StopGradient") or not node.data_inputs:
                break
            name, port, _ = parse_ref(node.data_inputs[0])  # others may read what this only passes on

    def layer(self, operation: Operation) -> None:
        """A layer with weights, its bias and its activation."""
        activation = operation.options.get("activation", "")
        if activation not in ACTIVATIONS:
            raise UsageError(f"a graph has no {activation} as the program means it", hint="write a .tflite file")
        value = operation.outputs[0]
        name = node_name(value.name)
        at_data, at_weights, at_bias = LINEAR[operation.code]
        data, kernel = operation.operands[at_data], operation.operands[at_weights]
        bias = operation.inputs[at_bias] if len(operation.inputs) > at_bias else None
        result = self.product(operation, name, data, self.weights(name, operation, kernel))
        if bias is not None:
            result = self.add(f"{name}/sum", "BiasAdd", [result, self.offsets(name, bias)], {"T": FLOAT})
        if ACTIVATIONS[activation]:
            result = self.add(f"{name}/activation", str(ACTIVATIONS[activation]), [result], {"T": FLOAT})
        if operation.code == "FULLY_CONNECTED" and len(value.shape) != 2:
            result = self.reshaped(f"{name}/shaped", result, self.row_sizes(name, data, value))
        self.named(value, result)

    def offsets(self, name: str, bias: Value) -> str:
        """The bias of a layer, in numbers."""
        if (bias, "") not in self.held:
            offset = bias.content.numpy().astype(np.float64).reshape(-1)
            if bias.quantization is not None:
                offset = offset * np.array(bias.quantization.scales)
            self.held[bias, ""] = self.constant(f"{name}/bias", offset.astype(np.float32))
        return self.held[bias, ""]

    def reshaped(self, name: str, source: str, sizes: str) -> str:
        return self.add(name, "Reshape", [source, sizes], {"T": FLOAT, "Tshape": INT32})

    def sizes(self, name: str, *sizes: int) -> str:
        return self.constant(name, np.array(sizes, np.int32))

    def row_sizes(self, name: str, data: Value, value: Value) -> str:
        """The shape of what a layer on rows gives, ``value``; an open size makes no difference to it."""
        dims = self.dims(value)
        if dims.count(None) < 2:
            return self.sizes(f"{name}/shaped/shape", *(-1 if size is None else size for size in dims))
        if len(data.shape) != len(dims):
            raise self.too_open(name)
        given = self.add(f"{name}/rows/given", "Shape", [self.ref(data)], {"T": FLOAT, "out_type": INT32})
        ends = [self.sizes(f"{name}/rows/begin", 0), self.sizes(f"{name}/rows/count", len(dims) - 1)]
        first = self.add(f"{name}/rows/sizes", "Slice", [given, *ends], {"T": INT32, "Index": INT32})
        last = [self.sizes(f"{name}/rows/units", value.shape[-1]), self.constant(f"{name}/rows/axis", np.int32(0))]
        attrs = {"T": INT32, "Tidx": INT32, "N": 2}
        return self.add(f"{name}/shaped/shape", "ConcatV2", [first, *last], attrs)

    def transposed_sizes(self, name: str, operation: Operation) -> str:
        """The shape of what a transposed convolution gives: its node's own operand where sizes are open."""
        dims = self.dims(operation.outputs[0])
        if None not in dims:
            return self.sizes(f"{name}/size", *operation.outputs[0].shape)
        for node in (self.graph[each] for each in operation.nodes if each in self.graph):
            if node.op == "Conv2DBackpropInput" and attr_text(node, "data_format", "NHWC") == "NHWC":
                return node.inputs[0]
        raise self.too_open(name)

    def dims(self, value: Value) -> tuple[int | None, ...]:
        """A tensor's sizes in the graph, None for open ones."""
        dims = self.inferred.shape(canonical(_plain(value.name))).dims
        return dims if dims is not None and len(dims) == len(value.shape) else (None,) * len(value.shape)

    @cached_property
    def inferred(self) -> Inferred:
        return infer(self.graph)

    def too_open(self, name: str) -> UsageError:
        return UsageError(
            "a quantized graph has no form for the sizes of this layer's result, which the inputs leave open",
            where=f"node '{name}'",
            hint=f"give the sizes of the inputs with {option('input_shape', 'shapes')}, or write a .tflite file",
        )

    def weights(self, name: str, operation: Operation, kernel: Value) -> str:
        """The weights in TensorFlow's order, as codes with their scales where they have such."""
        producer = next((o for o in self.program.operations if kernel in o.outputs), None)
        coded = kernel if producer is None else producer.inputs[0]
        if coded is None or coded.constant is None or coded.dtype not in (FLOAT, HALF, INT8):
            raise UsageError(f"the weights of '{name}' are neither floats nor int8 codes", hint="write a .tflite file")
        key = (coded, operation.code)
        if key not in self.held:
            self.held[key] = self.written_weights(name, operation, kernel, coded)
        return self.held[key]

    def written_weights(self, name: str, operation: Operation, kernel: Value, coded: Value) -> str:
        values = _in_order(operation, coded.content.numpy())
        if coded.dtype is HALF:
            stored = self.constant(f"{name}/weights", values)
            return self.add(f"{name}/weights/float", "Cast", [stored], {"SrcT": HALF, "DstT": FLOAT})
        if coded.quantization is None:
            return self.constant(f"{name}/weights", values)
        scales = np.array(coded.quantization.scales, np.float32)
        across = np.ones(len(kernel.shape), np.int64)
        across[WEIGHT_AXIS[operation.code]] = len(scales)
        codes = self.constant(f"{name}/weights", values)
        numbers = self.add(f"{name}/weights/float", "Cast", [codes], {"SrcT": INT8, "DstT": FLOAT})
        steps = self.constant(f"{name}/weights/scales", _in_order(operation, scales.reshape(across)))
        return self.add(f"{name}/weights/scaled", "Mul", [numbers, steps], {"T": FLOAT})

    def product(self, operation: Operation, name: str, data: Value, weights: str) -> str:
        options, source = operation.options, self.ref(data)
        at_weights = LINEAR[operation.code][1]
        kernel = operation.inputs[at_weights]
        mark: dict[str, Any] = {MAY_QUANTIZE: True} if kernel is not None and kernel.quantization is not None else {}
        if operation.code == "FULLY_CONNECTED":
            if len(data.shape) != 2:
                source = self.reshaped(f"{name}/rows", source, self.sizes(f"{name}/rows/shape", -1, data.shape[-1]))
            attrs = {"T": FLOAT, "transpose_a": False, "transpose_b": False}
            return self.add(f"{name}/product", "MatMul", [source, weights], {**attrs, **mark})
        attrs = {
            "T": FLOAT,
            "strides": (1, options["stride_h"], options["stride_w"], 1),
            "padding": options["padding"].encode(),
            "data_format": b"NHWC",
        }
        if operation.code == "TRANSPOSE_CONV":
            size = self.transposed_sizes(name, operation)
            return self.add(f"{name}/product", "Conv2DBackpropInput", [size, weights, source], attrs)
        attrs["dilations"] = (1, options["dilation_h"], options["dilation_w"], 1)
        op = "Conv2D" if operation.code == "CONV_2D" else "DepthwiseConv2dNative"
        return self.add(f"{name}/product", op, [source, weights], {**attrs, **mark})

    def other(self, operation: Operation) -> None:
        """An operation that the graph has already; it reads the codes, and its results are put on their steps."""
        for value in operation.inputs:
            if value is not None and value in self.refs:
                self.redirect(operation, canonical(_plain(value.name)), self.refs[value])
        for value in operation.outputs:
            name, port, _ = parse_ref(_plain(value.name))
            if name not in self.nodes or value.name.endswith(ADDED):
                self.change(operation, value)
                continue
            if value.quantization is None:
                self.refs[value] = f"{name}:{port}"
                continue
            if port or len(operation.outputs) > 1:
                self.refs[value] = self.rounded(f"{name}/codes", f"{name}:{port}", value.quantization)
                continue
            node = self.nodes[name]
            while node.op in ("Identity", "StopGradient") and node.data_inputs and not parse_ref(node.inputs[0]).port:
                node = self.nodes[node_name(node.inputs[0])]
            self.named(value, self.add(f"{node.name}/plain", node.op, node.inputs, dict(node.attrs)))

    def change(self, operation: Operation, value: Value) -> None:
        """What the quantizer put in front of the first layer: an operation on floats that no node of the graph is."""
        if operation.code not in CHANGES:
            return
        data, by = operation.inputs
        if data is None or by is None or by.constant is None or data not in self.refs:
            return
        name = value.name.replace(":", "_")
        other = self.constant(f"{name}/by", by.constant.numpy())
        self.refs[value] = self.add(name, CHANGES[operation.code], [self.refs[data], other], {"T": FLOAT})

    def redirect(self, operation: Operation, old: str, new: str) -> None:
        """Lets the nodes of an operation read another tensor."""
        for name in operation.nodes:
            node = self.nodes.get(name)
            if node is not None and any(canonical(ref) == old for ref in node.inputs):
                inputs = [new.removesuffix(":0") if canonical(ref) == old else ref for ref in node.inputs]
                self.nodes[name] = Node(name, node.op, inputs, dict(node.attrs))


def _with_places(node: Node, kept: Container[str]) -> Node:
    """The node without the wish to be on the same device as nodes that are no more."""
    places = node.attrs.get("_class")
    if not isinstance(places, tuple):
        return node
    left = tuple(p for p in places if not p.startswith(LOCATION) or p.removeprefix(LOCATION).decode() in kept)
    return node if left == places else node.replace(attrs={**node.attrs, "_class": left})


def _plain(name: str) -> str:
    """The graph's name of a tensor whose name says in which form the program has it."""
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    return name


def _in_order(operation: Operation, values: Any) -> Any:
    """A layer's weights, or their scales, with the axes as TensorFlow has them."""
    if operation.code == "FULLY_CONNECTED":
        return np.ascontiguousarray(values.T)
    if operation.code == "DEPTHWISE_CONV_2D":
        _, height, width, channels = values.shape
        each = operation.options["multiplier"]
        return values.reshape(height, width, channels // each, each)
    return np.ascontiguousarray(values.transpose(1, 2, 0 if operation.code == "TRANSPOSE_CONV" else 3,
                                                 3 if operation.code == "TRANSPOSE_CONV" else 0))  # fmt: skip
