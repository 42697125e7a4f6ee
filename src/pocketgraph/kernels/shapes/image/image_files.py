"""Shape rules of pictures in files, and of boxes drawn into pictures."""

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
