"""MetaGraphDefs and SavedModels: tags and signatures."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from pocketgraph import formats
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats import meta_graph
from pocketgraph.formats.protos import message
from pocketgraph.graph import Signature
from support import model_dir, needs_shared


def saved_model(*tag_sets: tuple[str, ...], variable: bool = False) -> Any:
    """A SavedModel with one graph for each set of tags; the node's name is the first tag."""
    made = message("tensorflow.SavedModel")(saved_model_schema_version=1)
    for tags in tag_sets:
        graph = made.meta_graphs.add()
        graph.meta_info_def.tags.extend(tags)
        graph.meta_info_def.tensorflow_version = "1.15.0"
        graph.graph_def.node.add(name=tags[0], op="VariableV2" if variable else "Placeholder")
        for key in ("serving_default", "other"):
            signature = graph.signature_def[key]
            signature.method_name = "tensorflow/serving/predict"
            signature.inputs["in"].name = f"{tags[0]}:0"
            signature.outputs["b"].name = f"{key}_b:0"
            signature.outputs["a"].name = f"{key}_a:0"
    return made


def test_tags_choose_the_graph(tmp_path: pathlib.Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(saved_model(("train",), ("serve",), ("serve", "gpu")).SerializeToString())
    assert list(formats.load(tmp_path).nodes) == ["serve"]
    assert list(formats.load(tmp_path, tags="train").nodes) == ["train"]
    assert [graph.tags for graph in meta_graph.read_saved_model(tmp_path)] == [("train",), ("serve",), ("serve", "gpu")]
    for tags in ("gpu,serve", "serve, gpu,"):
        assert meta_graph.with_tags(meta_graph.read_saved_model(tmp_path), tags, "").tags == ("serve", "gpu")
    with pytest.raises(UsageError, match="no graph has the tags 'gpu'; there is 'train' or 'serve' or 'serve,gpu'"):
        formats.load(tmp_path, tags=["gpu"])


def test_without_one_for_serving_the_graph_that_does_not_train_is_taken(tmp_path: pathlib.Path) -> None:
    """A module of TensorFlow Hub has a graph without tags, and one for training."""
    model = saved_model(("train",), ("x",))
    del model.meta_graphs[1].meta_info_def.tags[:]
    (tmp_path / "saved_model.pb").write_bytes(model.SerializeToString())
    assert list(formats.load(tmp_path).nodes) == ["x"]


def test_several_graphs_and_none_for_serving(tmp_path: pathlib.Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(saved_model(("train",), ("eval",)).SerializeToString())
    with pytest.raises(UsageError, match="several graphs"):
        formats.load(tmp_path)


def test_signatures_name_inputs_and_outputs(tmp_path: pathlib.Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(saved_model(("serve",)).SerializeToString())
    graph = formats.load(tmp_path)
    assert (graph.inputs, graph.outputs) == (("serve:0",), ("serving_default_a:0", "serving_default_b:0"))
    assert graph.signatures["other"] == Signature(
        {"in": "serve:0"}, {"a": "other_a:0", "b": "other_b:0"}, "tensorflow/serving/predict"
    )
    assert formats.load(tmp_path, signature="other").outputs == ("other_a:0", "other_b:0")
    with pytest.raises(UsageError, match="no signature 'othr'; did you mean 'other'"):
        formats.load(tmp_path, signature="othr")


def test_text_forms(tmp_path: pathlib.Path) -> None:
    from google.protobuf import text_format

    made = saved_model(("serve",))
    (tmp_path / "saved_model.pbtxt").write_text(text_format.MessageToString(made))
    assert list(formats.load(tmp_path).nodes) == ["serve"]
    (tmp_path / "model.meta").write_text(text_format.MessageToString(made.meta_graphs[0]))
    assert formats.load(tmp_path / "model.meta").outputs == ("serving_default_a:0", "serving_default_b:0")


def test_variables_stay_variables(tmp_path: pathlib.Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(saved_model(("serve",), variable=True).SerializeToString())
    for path in (tmp_path, tmp_path / "saved_model.pb"):
        assert [node.op for node in formats.load(path)] == ["VariableV2"]


def test_what_is_not_the_graph_is_kept() -> None:
    made = saved_model(("serve",)).meta_graphs[0]
    made.collection_def["trainable_variables"].bytes_list.value.append(b"v")
    encoded = made.SerializeToString()
    rest = message("tensorflow.MetaGraphDef").FromString(meta_graph.parse(encoded, "m.meta").encoded)
    made.ClearField("graph_def")
    assert rest == made


def test_tags_and_signatures_are_not_for_a_graph_def(tmp_path: pathlib.Path) -> None:
    graph_def = saved_model(("serve",)).meta_graphs[0].graph_def
    (tmp_path / "g.pb").write_bytes(graph_def.SerializeToString())
    with pytest.raises(UsageError, match="no tags"):
        formats.load(tmp_path / "g.pb", tags="serve")
    with pytest.raises(UsageError, match="no signatures"):
        formats.load(tmp_path / "g.pb", signature="serving_default")


def test_a_directory_without_a_graph(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FormatError, match=r"no saved_model\.pb"):
        meta_graph.read_saved_model(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01")
    with pytest.raises(FormatError, match="holds no graph"):
        meta_graph.read_saved_model(tmp_path)


@needs_shared
def test_a_real_saved_model_without_variables() -> None:
    graph = formats.load(model_dir("sm_matrix_half_plus_two/matrix_half_plus_two/1"))
    assert (graph.inputs, graph.outputs) == (("x:0",), ("y:0",))


@needs_shared
def test_a_real_meta_file() -> None:
    path = model_dir("ckpt_v2_enet_chain/modelfinal.ckpt-13800.meta")
    meta = meta_graph.parse(path.read_bytes(), str(path))
    assert (len(meta.graph), meta.version) == (5617, "1.11.0")


def test_a_graph_saved_under_the_name_of_a_meta_graph_keeps_its_signatures(tmp_path: pathlib.Path) -> None:
    from pocketgraph.graph.graph import Signature
    from pocketgraph.graph.text_format import parse

    graph = parse("x = Placeholder(dtype=float, shape=[2])\ny = Neg(x, T=float)")
    signature = Signature({"in": "x:0"}, {"out": "y:0"}, "tensorflow/serving/predict")
    formats.save(graph.replace(signatures={"go": signature}), tmp_path / "small.meta")
    assert formats.load(tmp_path / "small.meta").signatures == {"go": signature}
    formats.save(graph, tmp_path / "plain.meta", text=False)  # said, not guessed
    assert formats.from_bytes((tmp_path / "plain.meta").read_bytes()).nodes.keys() == graph.nodes.keys()
