"""Shape rules of pictures in files, of their colors and pixels, and of boxes."""

from __future__ import annotations

from pocketgraph.graph.shape import Shape
from pocketgraph.kernels.shapes.common_rules import fixed, scalar, unchanged
from pocketgraph.kernels.shapes.rules import ShapeCall, shape_rule

shape_rule("DrawBoundingBoxes", "DrawBoundingBoxesV2")(unchanged)
shape_rule("EncodeJpeg", "EncodePng")(scalar)
shape_rule("DecodeGif")(fixed(Shape((None, None, None, 3))))


@shape_rule("DecodeJpeg", "DecodePng", "DecodeBmp", "DecodeAndCropJpeg")
def decode_image(call: ShapeCall) -> Shape:
    return Shape((None, None, call.attr("channels", 0) or None))


shape_rule(
    "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "HSVToRGB", "RGBToHSV", "AdjustContrast", "AdjustHsvInYiq",
    "Addons>AdjustHsvInYiq",
)(unchanged)  # fmt: skip


shape_rule("ImageConnectedComponents")(unchanged)


@shape_rule("BipartiteMatch")
def bipartite_match(call: ShapeCall) -> list[Shape]:
    dims = call.shape(0).dims
    return [Shape((size,)) for size in dims] if dims is not None and len(dims) == 2 else [Shape((None,))] * 2
