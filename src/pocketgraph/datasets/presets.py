"""How well-known image classifiers want their pictures: size, scaling, and the names of their layers."""

from __future__ import annotations

from dataclasses import dataclass

from pocketgraph.errors import UsageError, did_you_mean
from pocketgraph.graph import Graph


@dataclass(frozen=True)
class Preset:
    """One family of models.

    Attributes:
        name: what ``--preset`` calls it.
        about: which files it is for.
        size: width and height in pixels, unless the graph says otherwise.
        mean, std: the picture is fed as ``(pixel - mean) / std``.
        input_layer, output_layer: node names.
        self_test: the index of "military uniform", the answer to the original's picture of Grace Hopper.
        distinctive: whether a graph with these layer names is surely of this family.
        inner: how names of layers between them begin, where these names alone tell nothing.
    """

    name: str
    about: str
    size: int
    mean: float
    std: float
    input_layer: str
    output_layer: str
    self_test: int | None = None
    distinctive: bool = True
    inner: str = ""

    def fits(self, graph: Graph) -> bool:
        """Whether the graph has these layers."""
        has_both = self.input_layer in graph and self.output_layer in graph
        return has_both and any(node.name.startswith(self.inner) for node in graph)


INCEPTION_V3 = Preset(
    "inception_v3", "inception_v3_2016_08_28_frozen.pb and TF-Slim's own", 299, 0, 255,
    "input", "InceptionV3/Predictions/Reshape_1", 653,
)  # fmt: skip
PRESETS = {
    preset.name: preset
    for preset in (
        INCEPTION_V3,
        Preset(
            "inception_v3_2015", "the Inception v3 of 2015 and the Raspberry Pi's tensorflow_inception_stripped.pb",
            299, 128, 128, "Mul", "softmax", 866, distinctive=False,
        ),
        Preset(
            "inception_v1", "inception5h's tensorflow_inception_graph.pb, as the Android demo used it",
            224, 117, 1, "input", "output", distinctive=False,
        ),
        Preset(
            "mobilenet", "MobileNet v1 of any width and size", 224, 127.5, 127.5,
            "input", "MobilenetV1/Predictions/Reshape_1", 653,
        ),
        Preset(
            "mobilenet_v2", "MobileNet v2 of any width and size", 224, 127.5, 127.5,
            "input", "MobilenetV2/Predictions/Reshape_1", 653,
        ),
        Preset("retrained", "retrain.py on Inception v3", 299, 128, 128, "Mul", "final_result"),
        Preset(
            "retrained_mobilenet", "retrain.py on a MobileNet, TensorFlow for Poets", 224, 127.5, 127.5,
            "input", "final_result", inner="Mobilenet",
        ),
        Preset(
            "retrained_hub", "retrain.py on a TensorFlow Hub module", 299, 0, 255, "Placeholder", "final_result",
        ),
    )
}  # fmt: skip


def get(name: str) -> Preset:
    """The preset of this name; dashes are as good as underscores.

    Raises:
        UsageError: there is none.
    """
    try:
        return PRESETS[name.replace("-", "_")]
    except KeyError:
        hint = did_you_mean(name, PRESETS) or f"there are {', '.join(PRESETS)}"
        raise UsageError(f"there is no preset '{name}'", hint=hint) from None


def recognise(graph: Graph) -> Preset | None:
    """The preset whose distinctive layer names the graph has, if there is one."""
    return next((preset for preset in PRESETS.values() if preset.distinctive and preset.fits(graph)), None)
