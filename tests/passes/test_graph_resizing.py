"""The size that a graph brings its pictures to, all at once or one a round of a loop."""

from __future__ import annotations

from pocketgraph.graph.text_format import parse
from pocketgraph.passes.graph_resizing import graph_resizing


def test_a_map_over_pictures_resizes_each() -> None:
    """As ``tf.map_fn`` of TensorFlow 1 does in front of a detector; a pixel's own value is not kept by all."""
    graph = parse("""
        image = Placeholder(dtype=uint8, shape=[?,?,?,3])
        floats = Cast(image, SrcT=uint8, DstT=float)
        shape = Shape(floats, T=float)
        count = Const(int32 2)
        places = Const(int32 [0, 1])
        array = TensorArrayV3(count, dtype=float)
        filled = TensorArrayScatterV3(array, places, floats, array:1, T=float)
        held = Enter(array, T=resource, is_constant=true, frame_name="map")
        handed = Enter(filled, T=float, is_constant=true, frame_name="map")
        at = Enter(count, T=int32, is_constant=true, frame_name="map")
        one = TensorArrayReadV3(held, at, handed, dtype=float)
        first = Const(int32 0)
        row = ExpandDims(one, first, T=float, Tdim=int32)
        size = Const(int32 [96, 64])
        small = ResizeBilinear(row, size, T=float)
    """)
    found = graph_resizing(graph, "image")
    assert found is not None
    assert found.size == (96, 64)
    other = graph.map_nodes(lambda node: node.replace(op="Relu", inputs=["one"]) if node.name == "row" else node)
    assert graph_resizing(other, "image") is None


def test_a_map_of_tensorflow_2_resizes_each() -> None:
    """As its functions are once they are frozen: the list of pictures is entered by the loop."""
    graph = parse("""
        image = Placeholder(dtype=uint8, shape=[1,?,?,3])
        of_one = Const(int32 [-1, -1, 3])
        list = TensorListFromTensor(image, of_one, element_dtype=uint8, shape_type=int32)
        held = Enter(list, T=variant, is_constant=true, frame_name="map")
        zero = Const(int32 0)
        at = Enter(zero, T=int32, is_constant=true, frame_name="map")
        one = TensorListGetItem(held, at, of_one, element_dtype=uint8)
        floats = Cast(one, SrcT=uint8, DstT=float)
        row = ExpandDims(floats, zero, T=float, Tdim=int32)
        size = Const(int32 [96, 64])
        small = ResizeBilinear(row, size, T=float, half_pixel_centers=true)
    """)
    found = graph_resizing(graph, "image")
    assert found is not None
    assert (found.size, found.half_pixel_centers) == ((96, 64), True)
