"""Reads the description of a Keras model, in JSON, and writes the nodes of each call of a layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from pocketgraph.errors import FormatError, PocketgraphError
from pocketgraph.formats.keras.layer_writer import Dims, KerasTensor, LayerWriter, ModelNodes, advice, as_float
from pocketgraph.formats.keras.operation_call import parts
from pocketgraph.formats.keras.operations import operated, operation
from pocketgraph.formats.keras.wrappers import (
    CHANNELS_FIRST,
    MODELS,
    RULES,
    check_arguments,
    mask_of,
    with_channels_last,
)
from pocketgraph.graph import DType, Graph, Node, Shape, node_name
from pocketgraph.graph.dtype import DOUBLE, FLOAT
from pocketgraph.graph.edit import claim_name
from pocketgraph.graph.graph import DEFAULT_SIGNATURE, Signature
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array

Config = Mapping[str, Any]
_Endpoint = tuple[str, int, int]
"""A layer, the number of a call of it, and of the result."""
INPUT = "InputLayer"
CONSTANT = "_CONSTANT_VALUE"
"""What Keras 2 writes in place of a layer where a call's first argument is a number."""
DAMAGE = LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, StopIteration
"""What reading a description ends in that is not what Keras writes."""
DEEPEST = 20
"""How many models may lie in each other."""
MOST_CALLS = 100_000  # of layers, in one model


def parse(described: Config, weights: Mapping[str, Array], where: str, version: str = "") -> Graph:
    """The graph of a model of layers.

    Args:
        described: its class and configuration, as ``Model.to_json`` tells them, alone or as ``model_config``.
        weights: the values of its weights; a layer's are called ``LAYER/kernel`` and so on.
        where: the file, for messages.
        version: of the Keras whose functions are meant; "" for those of TensorFlow.js.

    Raises:
        FormatError: it is damaged, weights are missing, or a layer is of a kind that is not read.
    """
    told = str(described.get("keras_version", ""))  # of Keras 3 TensorFlow.js reads none, so it computes as Keras does
    rules = {**RULES, **dict.fromkeys(MODELS, _model)}
    nodes = ModelNodes(weights, where, version or told * told.startswith("3."), rules)
    try:
        model = described.get("model_config", described)
        ends = _NestedModel(nodes, model["class_name"], model["config"], "", "", 0).written()
    except PocketgraphError:
        raise
    except DAMAGE as error:
        raise FormatError(
            f"the description of its layers is damaged: {type(error).__name__} {str(error)[:200]}", where=where
        ) from None
    seen: set[str] = set()
    for at, value in enumerate(ends[1]):
        name = value.ref.partition(":")[0]
        if name in seen:  # an output is called like its node
            copy = Node(claim_name(name, nodes.taken), "Identity", [value.ref], {"T": value.dtype})
            ends[1][at] = value._replace(ref=nodes.put(copy))
        seen.add(name)
    inputs, outputs = ({value.ref.partition(":")[0]: _with_port(value.ref) for value in side} for side in ends)
    signature = Signature(inputs, outputs)
    graph = Graph(
        nodes.nodes.values(), inputs=signature.inputs.values(), outputs=signature.outputs.values(),
        signatures={DEFAULT_SIGNATURE: signature},
    )  # fmt: skip
    # as the results of all steps, of which only the last is asked for: a .pb would have them for further outputs
    needed = {*reachable(graph, map(node_name, outputs.values())), *inputs}
    return graph.replace([node for node in graph if node.name in needed])


def _with_port(ref: str) -> str:
    return ref if ":" in ref else f"{ref}:0"


def _model(writer: LayerWriter, *inputs: KerasTensor) -> list[KerasTensor]:
    """A model inside a layer."""
    inside = f"{writer.scope}{writer.layer}/"
    return _NestedModel(writer.model, writer.kind, writer.config, f"{writer.call}/", inside, 1).written([*inputs])[1]


class _NestedModel:
    """A model, or one that is a layer of another.

    Attributes:
        layers: its layers by name.
        inside: the names of the models around their weights; ``scope`` is that of a call's nodes.
        made: the results of the calls so far, by layer and call.
    """

    def __init__(self, nodes: ModelNodes, kind: str, config: Any, scope: str, inside: str, depth: int) -> None:
        if depth > DEEPEST:
            raise FormatError(f"more than {DEEPEST} models lie in each other", where=nodes.where)
        self.nodes, self.kind, self.scope, self.inside, self.depth = nodes, kind, scope, inside, depth
        self.config: Config = config if isinstance(config, Mapping) else {"layers": config}
        if kind not in MODELS and "layers" not in self.config:
            said = f"the model is of the class '{kind}', which is its maker's own and does not tell its layers"
            raise FormatError(said, where=nodes.where, hint=advice(nodes.version))
        self.layers = [_LayerConfig(layer) for layer in self.config["layers"]]
        self.made: dict[tuple[str, int], list[KerasTensor]] = {}

    def written(self, given: Sequence[KerasTensor] = ()) -> tuple[list[KerasTensor], list[KerasTensor]]:
        """The nodes of a call of the model; its inputs (placeholders where none are given) and outputs."""
        names = [] if self.kind == "Sequential" else list(_endpoints(self.config["input_layers"]))
        if given and len(given) != (len(names) or 1):
            said = f"the model '{self.scope[:-1]}' takes {len(names) or 1} tensors, and is given {len(given)}"
            raise FormatError(said, where=self.nodes.where)
        if self.kind == "Sequential":
            return self._sequence(given)
        inputs: list[KerasTensor] = []
        by_name = {layer.name: layer for layer in self.layers}
        for at, (name, _, _) in enumerate(names):
            value = given[at] if given else self._placeholder(by_name[name])
            inputs.append(value)
            self.made[name, 0] = [value]
        outputs = list(_endpoints(self.config["output_layers"]))
        calls = self._calls(outputs)
        if len(calls) > MOST_CALLS:
            raise FormatError(f"there are more than {MOST_CALLS} calls of layers", where=self.nodes.where)
        pending = [(name, call) for name, call, _ in reversed(outputs)]
        opened: set[tuple[str, int]] = set()
        while pending:  # depth first; what no output needs is left out
            key = pending[-1]
            if key in self.made:
                pending.pop()
                continue
            layer, ends = calls[key]
            missing = [(name, call) for name, call, _ in ends if (name, call) not in self.made]
            if not missing:
                self.made[key] = self._called(layer, [self.made[name, call][port] for name, call, port in ends], key[1])
            elif key in opened:
                raise FormatError(f"the layer '{layer.name}' takes its own result", where=self.nodes.where)
            else:
                opened.add(key)
                pending += reversed(missing)
        return inputs, [self.made[name, call][port] for name, call, port in outputs]

    def _calls(self, outputs: list[_Endpoint]) -> dict[tuple[str, int], tuple[_LayerConfig, list[_Endpoint]]]:
        """The layer of each call, by its name and the call's number, and what the call takes.

        Keras numbers the calls of a model that is a layer from one, and leaves out the first, which made it; Keras 3
        does so only where it names the outputs, which are renumbered.
        """
        calls = {layer.name: layer.calls() for layer in self.layers}
        read, shown = (_numbers(ends) for ends in (chain(*chain(*calls.values())), outputs))
        found: dict[tuple[str, int], tuple[_LayerConfig, list[_Endpoint]]] = {}
        for layer in self.layers:
            name, ends = layer.name, calls[layer.name]
            asked = read.get(name, set()) | (set() if layer.is_of_keras_3 else shown.get(name, set()))
            first = int(layer.kind in MODELS and 0 not in asked and max(asked, default=0) == len(ends))
            found.update({(name, index): (layer, call) for index, call in enumerate(ends, first)})
            told = shown.get(name, {0})
            is_from_one = 0 not in told and (layer.kind != "Sequential" or max(told) == len(ends))
            if layer.kind in MODELS and layer.is_of_keras_3 and is_from_one:
                outputs[:] = [
                    (one, call - 1 + first, port) if one == name else (one, call, port) for one, call, port in outputs
                ]
        return found

    def _sequence(self, given: Sequence[KerasTensor]) -> tuple[list[KerasTensor], list[KerasTensor]]:
        layers = [layer for layer in self.layers if layer.kind != INPUT]
        values = list(given) or [self._placeholder(self.layers[0])]
        inputs = values
        for layer in layers:
            values = self._called(layer, values, 0)
        return inputs, values

    def _placeholder(self, layer: _LayerConfig) -> KerasTensor:
        shape, dtype = layer.input_shape() or _dims(self.config.get("build_input_shape")), FLOAT
        if shape is None:
            raise FormatError(f"the layer '{layer.name}' does not say the shape of its input", where=self.nodes.where)
        told = layer.config.get("dtype")
        if isinstance(told, str) and layer.kind == INPUT:
            dtype = DType.named(told)
        name = layer.name if layer.kind == INPUT else f"{layer.name}_input"
        node = Node(
            claim_name(self.scope + name, self.nodes.taken), "Placeholder", (), {"dtype": dtype, "shape": Shape(shape)}
        )
        return KerasTensor(self.nodes.put(node), shape, dtype)

    def _called(self, layer: _LayerConfig, values: list[KerasTensor], index: int) -> list[KerasTensor]:
        """The results of a call; the node that makes the first has the layer's name."""
        values = layer.masked(index, values)
        name = claim_name(f"{self.scope}{layer.name}" + f"_{index}" * bool(index), self.nodes.taken)
        writer = LayerWriter(self.nodes, layer.kind, layer.config, self.inside, name)
        writer.given, writer.named = layer.arguments(index, values)
        writer.has_own_mask = layer.gives_masks(index)
        if layer.operation is None:
            check_arguments(writer)
        if layer.kind in MODELS:
            inside = f"{self.inside}{layer.name}/"
            inner = _NestedModel(self.nodes, layer.kind, layer.config, f"{name}/", inside, self.depth + 1)
            return inner.written(values)[1]
        self.nodes.note_mask_readers(layer.kind, name, values)
        if layer.operation is None:  # Keras gives a layer floats of the type that it computes in
            values = [
                as_float(writer, value)._replace(mask=value.mask) if value.dtype.is_floating else value
                for value in values
            ]
        else:
            floats = {value.dtype for value in values if value.dtype.is_floating}
            writer.float_type = floats.pop() if len(floats) == 1 else DOUBLE if DOUBLE in floats else FLOAT
        writer.given, writer.named = layer.arguments(index, values)
        made = self._by_rule(writer, layer, values)
        results = made if isinstance(made, list) else [made]
        is_operation = layer.operation is not None
        last, mask = results[0].ref, results[0].mask or (None if is_operation else mask_of(writer, *values))
        if last.startswith(f"{name}/"):
            node = self.nodes.nodes.pop(last)
            self.nodes.put(node.replace(name=name))
        else:
            self.nodes.put(Node(name, "Identity", [last], {"T": results[0].dtype}))
        others = [
            one._replace(ref=name + one.ref.removeprefix(last)) if one.ref.partition(":")[0] == last else one
            for one in results[1:]
        ]
        return [results[0]._replace(ref=name, mask=mask), *others]

    def _by_rule(
        self, writer: LayerWriter, layer: _LayerConfig, values: list[KerasTensor]
    ) -> KerasTensor | list[KerasTensor]:
        """What the rule of the layer's class, or of the operation that it stands for, writes."""
        named = layer.operation
        if named is not None:
            return operated(writer, named)
        rule = RULES.get(layer.kind)
        if rule is None:
            raise writer.refuse("is of a kind that is not read")
        if any(isinstance(one, np.ndarray) for one in parts(writer.given[:1])):  # numbers among tensors, as Add takes
            values = [
                one if isinstance(one, KerasTensor) else writer.const(one, "constant", DType.of_numpy(one.dtype))
                for one in parts(writer.given[:1])
            ]
        if writer.config.get("data_format") == "channels_first" and layer.kind in CHANNELS_FIRST:
            return with_channels_last(rule, writer, *values)
        return rule(writer, *values)


class _LayerConfig:
    """What a model says of one of its layers."""

    def __init__(self, described: Config) -> None:
        self.kind: str = described["class_name"]
        config = described["config"]
        self.config: Config = config if isinstance(config, Mapping) else {"layers": config}
        self.name = str(described.get("name") or self.config["name"])
        self.module = str(described.get("module") or "")
        self._calls = described.get("inbound_nodes", [])
        if self.operation is not None and self.is_of_keras_3:  # whose mask is an argument as others
            for call in self._calls:
                call["kwargs"] = {f"attention_{name}" if name == "mask" else name: one
                                  for name, one in call.get("kwargs", {}).items()}  # fmt: skip

    @property
    def operation(self) -> str | None:
        """The operation that it stands for; None for a true layer."""
        return operation(self.kind, self.config, self.module, is_of_keras_3=self.is_of_keras_3)

    @property
    def is_of_keras_3(self) -> bool:
        """Whether its calls are tables of arguments."""
        return bool(self._calls) and isinstance(self._calls[0], Mapping) and "args" in self._calls[0]

    def calls(self) -> list[list[_Endpoint]]:
        """What each call takes: layer, call and output."""
        return [[*_sources(call), *_sources(_masks(call))] for call in self._calls]

    def gives_masks(self, index: int) -> bool:
        """Whether a call says itself which steps count."""
        return bool(self._calls) and any(_sources(_masks(self._calls[min(index, len(self._calls) - 1)])))

    def masked(self, index: int, values: list[KerasTensor]) -> list[KerasTensor]:
        """What a call takes, with the masks that it is given, which come last, in place of their own."""
        if not self._calls:
            return values
        call = self._calls[min(index, len(self._calls) - 1)]
        count = sum(1 for _ in _sources(call))
        masks = _filled(_masks(call), iter(values[count:]))
        values = values[:count]
        given = list(parts(masks))[: len(values)]
        return [value._replace(mask=mask or value.mask) for value, mask in zip_longest(values, given)]

    def arguments(self, index: int, values: Sequence[KerasTensor]) -> tuple[list[Any], dict[str, Any]]:
        """What a call takes, by place and by name, with the tensors in it."""
        if not self._calls:
            return list(values), {}
        call, left = self._calls[min(index, len(self._calls) - 1)], iter(values)
        if isinstance(call, Mapping) and "args" not in call:
            return [_filled(call, left)], {}
        if isinstance(call, Mapping):  # Keras 3
            given = [_filled(one, left) for one in call.get("args", ())]
            named = {name: _filled(one, left) for name, one in call.get("kwargs", {}).items() if name != "mask"}
        else:
            entries = [call] if isinstance(call[0], str) else call
            tensors = [next(left) if one[0] != CONSTANT else one[2] for one in entries]
            given = tensors if len(tensors) == 1 else [tensors]
            settings = [setting for one in entries if len(one) > 3 for setting in (one[3] or {}).items()]
            named = {name: _filled(one, left) for name, one in settings if name != "mask"}
        return given, named

    def input_shape(self) -> Dims | None:
        """The sizes of what the layer takes, where it begins a model."""
        found = self.config.get("batch_input_shape") or self.config.get("batch_shape")
        if found is None and self.kind in MODELS:
            return _LayerConfig(self.config["layers"][0]).input_shape()
        return _dims(found)


def _dims(told: Any) -> Dims | None:
    return None if told is None else tuple(None if size is None else int(size) for size in told)


def _filled(item: Any, values: Iterator[KerasTensor]) -> Any:
    """An argument as a file has it, its tensors taken from the values, which come in the order of ``_sources``."""
    if isinstance(item, Mapping):
        kind, config = item.get("class_name"), item.get("config")
        if kind == "__keras_tensor__":
            return next(values)
        if kind == "__tuple__":
            return [_filled(one, values) for one in item["items"]]
        if kind == "__slice__" and isinstance(config, Mapping):
            return slice(*(config.get(name) for name in ("start", "stop", "step")))
        if kind == "__ellipsis__":
            return Ellipsis
        if kind in ("__numpy__", "__tensor__") and isinstance(config, Mapping):
            return np.asarray(config["value"], str(config["dtype"]))
        return item if kind else {name: _filled(item[name], values) for name in sorted(item)}
    if isinstance(item, list):
        return next(values) if _is_endpoint(item) else [_filled(one, values) for one in item]
    return item


def _is_endpoint(item: list[Any]) -> bool:
    """Whether a list is a tensor as Keras 2 names it: a layer, the call and the result."""
    return len(item) in (3, 4) and isinstance(item[0], str) and all(isinstance(one, int) for one in item[1:3])


def _numbers(ends: Iterable[_Endpoint]) -> dict[str, set[int]]:
    """Which calls of each layer are read."""
    found: dict[str, set[int]] = {}
    for name, call, _ in ends:
        found.setdefault(name, set()).add(call)
    return found


def _endpoints(listed: Any) -> Iterator[_Endpoint]:
    """Inputs or outputs of a model: one, or lists and tables of them, whose keys are read in their order."""
    if isinstance(listed, Mapping):
        listed = [listed[name] for name in sorted(listed)]
    if listed and isinstance(listed[0], str):
        name, call, port = listed
        yield str(name), int(call), int(port)
    else:
        for one in listed:
            yield from _endpoints(one)


def _masks(call: Any) -> Any:
    """The masks that a call is given by name, as the file has them; None where it says none."""
    if isinstance(call, Mapping):
        return call.get("kwargs", {}).get("mask")
    entries = [call] if call and isinstance(call[0], str) else call or ()
    return next((one[3]["mask"] for one in entries if len(one) > 3 and one[3] and one[3].get("mask")), None)


def _sources(call: Any) -> Iterator[_Endpoint]:
    """What a call takes: ``[[name, call, output, {}], …]``, and in Keras 3 a table of arguments."""
    if isinstance(call, Mapping):
        if call.get("class_name") == "__keras_tensor__":
            name, index, port = call["config"]["keras_history"]
            yield str(name), int(index), int(port)
        elif not call.keys() & {"args", "kwargs", "items", "class_name"}:
            for name in sorted(call):
                yield from _sources(call[name])
        else:
            named = (one for name, one in call.get("kwargs", {}).items() if name != "mask")  # follows from the inputs
            for argument in (*call.get("args", ()), *named, *call.get("items", ())):
                yield from _sources(argument)
    elif isinstance(call, list):
        if call and isinstance(call[0], str):
            if call[0] != CONSTANT and len(call) > 2:
                yield str(call[0]), int(call[1]), int(call[2])
            if len(call) > 3 and call[3]:
                yield from _sources({"kwargs": call[3]})
        else:
            for argument in call:
                yield from _sources(argument)
