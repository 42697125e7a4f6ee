"""Pictures of a graph: an HTML page to walk through it, an SVG, a PNG."""
