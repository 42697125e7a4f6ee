"""Whole models that Keras saves: HDF5 files (.h5) and archives (.keras), read through the package h5py.

Source: keras/src/legacy/saving/legacy_h5_format.py and keras/src/saving/saving_lib.py of Keras 3, and the files of the
same names in tf_keras.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pocketgraph.errors import AGAIN, FormatError, MissingExtraError
from pocketgraph.formats.content import OR_OF_OLD_KERAS, WITH_KERAS
from pocketgraph.formats.files import mapped
from pocketgraph.formats.keras.keras_1_models import (
    by_name,
    in_words_of_keras_2,
    layers_of,
    turned,
    weights_of_keras_2,
)
from pocketgraph.formats.keras.layer_writer import AS_SAVED_MODEL
from pocketgraph.formats.keras.preprocessing_layers import specials
from pocketgraph.formats.keras.saved_variables import numbered, variables_of_layers
from pocketgraph.formats.keras.topology import Config, parse
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.protobuf.wire import Buffer

DAMAGED = (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError, MemoryError)
"""What h5py raises for files that are not what they say."""
WEIGHTS_ENDINGS = (".weights.h5", ".h5", ".hdf5", "_weights.h5", "-weights.h5")
"""How a file of weights is called whose model ``NAME.json`` describes, after NAME."""
LATEST = "3.4"  # the version whose functions are meant where a file of Keras 3 says none
HIGHEST_RATIO = 20
"""Times the bytes of a file that all its arrays may have together: weights that were trained hardly compress."""
ALWAYS_TAKEN = 1 << 28
"""Bytes of arrays that a file of any size may have: deflate makes a thousandth of nothing but zeros."""

DEFLATE, SHUFFLE, FLETCHER, LZF = 1, 2, 3, 32000  # HDF5's numbers of filters
PACKING, KEEPING = (DEFLATE, LZF), (SHUFFLE, FLETCHER)
"""Filters whose output has another size than their input, of which a dataset may have one; and those that keep it."""
CHECKSUM = 4  # bytes that Fletcher's adds to a chunk


def parse_hdf5(buffer: Buffer, where: str) -> Graph:
    """The graph of a ``.h5`` file that holds a whole model.

    Raises:
        FormatError: it is damaged, holds weights alone, or a layer is of a kind that is not read.
        MissingExtraError: h5py is not installed.
    """
    with _HeldFile(bytes(buffer), where) as file:
        described = _config(file.attribute("model_config"), where)
        return _with_weights(described, file, where, file.text("keras_version"))


def parse_architecture(buffer: Buffer, where: str) -> Graph:
    """The graph of a description in JSON, as ``Model.to_json`` tells it, with the weights of a file beside it.

    Raises:
        FormatError: it is damaged, there is no such file, or a layer is of a kind that is not read.
        MissingExtraError: h5py is not installed.
    """
    described = _config(bytes(buffer), where)
    path = weights_beside(where)
    with _HeldFile(bytes(mapped(path)), path) as file:
        told = described.get("keras_version") or file.text("keras_version")
        return _with_weights(described, file, where, str(told or (LATEST if "module" in described else "")))


def weights_beside(where: str) -> str:
    """The path of the weights of a description: called like it, or alone in its folder.

    Raises:
        FormatError: there is none, or there are several and none is called like it.
    """
    stem = re.sub(r"\.json$", "", where)
    for ending in WEIGHTS_ENDINGS:
        if os.path.isfile(stem + ending):
            return stem + ending
    folder = os.path.dirname(where) or "."
    found = sorted(name for name in os.listdir(folder) if name.endswith((".h5", ".hdf5")))
    if len(found) == 1:
        return os.path.join(folder, found[0])
    raise FormatError(
        f"this describes a Keras model without its weights, and {len(found) or 'no'} files beside it may hold these",
        where=where, hint=f"call the file of the weights {os.path.basename(stem)}.h5 and put it beside this one",
    )  # fmt: skip


def _with_weights(described: Config, file: _HeldFile, where: str, version: str) -> Graph:
    """The graph of a described model with the weights of a file: of ``save_weights``, or of a whole model."""
    try:
        _refuse_quantized_weights(described, where)
        if file.has("layers") or file.has("_layer_checkpoint_dependencies"):
            variables = dict(variables_of_layers(described, file.variables, where))
            return parse(described, variables, where, version or LATEST)
        group = "model_weights" if file.has("model_weights") else ""
        weights: dict[str, Array] = {}
        is_of_keras_1 = version.startswith(("0.", "1.")) or (not version and '"border_mode"' in json.dumps(described))
        has_merge = version.startswith(("2.0.", "2.1.")) and '"Merge"' in json.dumps(described)
        if is_of_keras_1 or has_merge:
            described = in_words_of_keras_2(described, where)
        kinds = by_name(described)
        nested = {layer.get("name") or layer["config"]["name"] for layer in _layers(described) if _holds_model(layer)}
        for layer in file.names(group, "layer_names"):
            for name in file.names(f"{group}/{layer}", "weight_names"):
                stored = _stored_name(layer, name, is_model=layer in nested)
                array = file.array(f"{group}/{layer}/{name}")
                if file.text("backend") == "theano":
                    owner = kinds.get(stored.split("/")[-2], {})
                    array = turned(str(owner.get("class_name")), stored, array)
                weights[stored] = array
        weights = weights_of_keras_2(described, weights) if is_of_keras_1 else _with_lora(weights, kinds)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise FormatError(f"the description of its layers is damaged: {str(error)[:200]}", where=where) from None
    return parse(described, weights, where, version or ("1" if is_of_keras_1 else "2"))


def _with_lora(weights: dict[str, Array], kinds: Mapping[str, Config]) -> dict[str, Array]:
    """Weights with what LoRA trained apart from them, as Keras adds the product of both parts; archives have that."""
    for name in [name for name in weights if re.search(r"(^|/)lora_\w+_a$", name)]:
        first, second = weights.pop(name), weights.pop(f"{name[:-1]}b")
        whole, config = name.replace("lora_", "")[:-2], kinds[name.split("/")[-2]]["config"]
        rank = config["lora_rank"]
        weights[whole] = weights[whole] + (config.get("lora_alpha") or rank) / rank * np.matmul(first, second)
    return weights


def _refuse_quantized_weights(described: Config, where: str) -> None:
    """Makes sure that a layer's kernel is what it multiplies by.

    Raises:
        FormatError: Keras quantized it.
    """
    for layer in layers_of(described):
        config = layer["config"] if isinstance(layer["config"], Mapping) else {}
        policy = config.get("dtype")
        mode = policy.get("config", {}).get("mode") if isinstance(policy, Mapping) else None
        named = f"the layer '{config.get('name')}' ({layer['class_name']})"
        if mode:
            raise FormatError(
                f"{named} was quantized by Keras ({mode}), which is not read", where=where,
                hint=f"save the model as it was before model.quantize(), and quantize that file; or {AS_SAVED_MODEL}",
            )  # fmt: skip


def parse_archive(buffer: Buffer, where: str) -> Graph:
    """The graph of a ``.keras`` archive.

    Raises:
        FormatError: it is damaged, or a layer is of a kind that is not read.
        MissingExtraError: h5py is not installed.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(buffer)) as archive:
            held = {item.filename: item.file_size for item in archive.infolist()}
            if sum(held.values()) > most_held(len(buffer)):
                raise FormatError("the archive says that it holds more than weights do", where=where)
            if "config.json" not in held or "model.weights.h5" not in held:
                raise FormatError("the archive has no config.json, or no model.weights.h5", where=where)
            described = _config(archive.read("config.json"), where)
            stored = archive.read("model.weights.h5")
            for layer, base in numbered(_layers(described)):
                if f"assets/layers/{base}/vocabulary.txt" in held:  # of a lookup that saw data
                    words = archive.read(f"assets/layers/{base}/vocabulary.txt").decode().split("\n")
                    layer["config"]["vocabulary"] = words[specials(layer["config"]) :]
            version = json.loads(archive.read("metadata.json"))["keras_version"] if "metadata.json" in held else "3"
    except (zipfile.BadZipFile, NotImplementedError, EOFError, *DAMAGED) as error:
        raise FormatError(f"the archive is damaged: {str(error)[:200]}", where=where, hint=AGAIN) from None
    with _HeldFile(stored, where) as file:
        return _with_weights(described, file, where, version)


def _config(told: Any, where: str) -> Config:
    try:
        found = json.loads(told)
        found = json.loads(found) if isinstance(found, str) else found  # a text that was written as JSON once more
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"the description of its layers is damaged: {str(error)[:200]}", where=where) from None
    if not isinstance(found, Mapping) or not isinstance(found.get("config"), (Mapping, list)):
        raise FormatError("it does not describe a model of layers", where=where, hint=WITH_KERAS.format(where))
    return found


def _layers(described: Config) -> Sequence[Config]:
    config = described.get("config")
    found = config.get("layers", ()) if isinstance(config, Mapping) else config
    return [layer for layer in found or () if isinstance(layer, Mapping)] if isinstance(found, list) else ()


def _holds_model(layer: Config) -> bool:
    """Whether a layer is a model, or wraps one."""
    inner = layer.get("config")
    wrapped = inner.get("layer") if isinstance(inner, Mapping) else None
    return bool(_layers(layer)) or (isinstance(wrapped, Mapping) and _holds_model(wrapped))


def _stored_name(layer: str, name: str, *, is_model: bool) -> str:
    """A weight's name as the rules of layers ask for it, ``LAYER/kernel``, without an output's number.

    A model that was read and written again in one graph of TensorFlow 1 has ``LAYER_1/kernel_2`` in the layer.
    """
    parts = re.sub(r":\d+$", "", name).split("/")
    if is_model:
        return "/".join((layer, *parts))
    parts[-1] = re.sub(r"_\d+$", "", parts[-1])
    if f"/{layer}/" in f"/{name}":
        return "/".join(parts)
    return "/".join((layer, *parts[1:])) if len(parts) > 1 else f"{layer}/{parts[0]}"


def most_held(size: int) -> int:
    """Bytes that the arrays of a file of this size may have together."""
    return max(ALWAYS_TAKEN, HIGHEST_RATIO * size)


def _unpacks_beyond(item: Any) -> bool:
    """Whether a chunk of a dataset may become longer than it says: HDF5 unpacks as long as there is something."""
    stored = item.id.get_create_plist()
    filters = [stored.get_filter(at)[0] for at in range(stored.get_nfilters())]
    if not set(filters) <= {*PACKING, *KEEPING} or sum(map(filters.count, PACKING)) > 1:
        return True
    if DEFLATE not in filters:
        return False
    longest = math.prod(item.chunks) * item.dtype.itemsize + CHECKSUM * filters.count(FLETCHER)
    for at in range(item.id.get_num_chunks()):
        _, packed = item.id.read_direct_chunk(item.id.get_chunk_info(at).chunk_offset)
        with contextlib.suppress(zlib.error):  # which HDF5 tells, too
            if len(zlib.decompressobj().decompress(packed, longest + 1)) > longest:
                return True
    return False


class _HeldFile:
    """An HDF5 file in memory, of which only what it holds itself is read: no links to other files."""

    def __init__(self, content: bytes, where: str) -> None:
        try:
            import h5py
        except ImportError:
            raise MissingExtraError(
                "models that Keras saved are read with the package h5py", where=where,
                hint=f"pip install 'pocketgraph[keras]', or {WITH_KERAS.format(where)}",
            ) from None  # fmt: skip
        self.where, self._h5py, self._left = where, h5py, most_held(len(content))
        try:
            self._file = h5py.File(io.BytesIO(content), "r")
        except DAMAGED as error:
            raise self._damaged(error) from None

    def __enter__(self) -> _HeldFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _damaged(self, error: BaseException) -> FormatError:
        return FormatError(f"the HDF5 file is damaged: {str(error)[:200]}", where=self.where, hint=AGAIN)

    def _at(self, path: str) -> Any:
        """What lies at a path.

        Raises:
            FormatError: there is nothing, or the file points to another one.
        """
        item: Any = self._file
        try:
            for part in filter(None, path.split("/")):
                if not isinstance(item.get(part, getlink=True), (self._h5py.HardLink, type(None))):
                    raise FormatError(f"'{path}' is a link, which is not followed", where=self.where)
                item = item[part]
        except DAMAGED as error:
            raise self._damaged(error) from None
        return item

    def has(self, path: str) -> bool:
        try:
            return path in self._file
        except DAMAGED as error:
            raise self._damaged(error) from None

    def attribute(self, name: str) -> Any:
        """An attribute of the file.

        Raises:
            FormatError: there is none, as in a file of weights alone.
        """
        try:
            found = self._file.attrs.get(name)
        except DAMAGED as error:
            raise self._damaged(error) from None
        if found is None:
            raise FormatError(
                f"this is an HDF5 file without a model: it has no '{name}'", where=self.where,
                hint="of weights alone, give the .json of the model beside it (model.to_json()), or load them into the "
                "model of your code and save that: model.load_weights('…'); model.export('saved_model')"
                + OR_OF_OLD_KERAS,
            )  # fmt: skip
        return found

    def text(self, name: str) -> str:
        """An attribute of the file as text; "" where there is none."""
        try:
            found = self._file.attrs.get(name, "")
        except DAMAGED as error:
            raise self._damaged(error) from None
        return found.decode(errors="replace") if isinstance(found, bytes) else str(found)

    def names(self, path: str, attribute: str) -> list[str]:
        """The texts of an attribute, which large ones have in parts: NAME0, NAME1, …"""
        try:
            held = self._at(path).attrs
            parts = [attribute] if attribute in held else []
            while f"{attribute}{len(parts)}" in held:
                parts.append(f"{attribute}{len(parts)}")
            found = [name for part in parts for name in np.ravel(held[part])]
            return [name.decode() if isinstance(name, bytes) else str(name) for name in found]
        except DAMAGED as error:
            raise self._damaged(error) from None

    def array(self, path: str) -> Array:
        """The elements of a dataset."""
        item = self._at(path)
        try:
            is_bfloat16 = item.dtype == np.dtype("V2")
            if item.dtype.kind not in "fiub" and not is_bfloat16:
                raise FormatError(f"'{path}' holds no numbers, but {item.dtype}", where=self.where)
            size = max(item.nbytes, math.prod(item.chunks or (0,)) * item.dtype.itemsize)
            if item.is_virtual or item.external or size > self._left or _unpacks_beyond(item):
                raise FormatError(
                    f"the elements of '{path}' are not in the file, or more than weights in it", where=self.where
                )
            self._left -= size
            found: Array = np.asarray(item[()])
            found = (found.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if is_bfloat16 else found
        except DAMAGED as error:
            raise self._damaged(error) from None
        return found

    def variables(self, path: str) -> list[Array]:
        """The arrays of a layer itself, in the order in which it made them; one that has a name, alone."""
        if not self.has(f"{path}/vars"):
            return []
        try:
            held = list(self._at(f"{path}/vars"))
            numbers = sorted((name for name in held if name.isdecimal()), key=int) or held[: len(held) == 1]
        except DAMAGED as error:
            raise self._damaged(error) from None
        return [self.array(f"{path}/vars/{number}") for number in numbers]
