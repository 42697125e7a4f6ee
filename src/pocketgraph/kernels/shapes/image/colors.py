"""Shape rules of colors."""

from __future__ import annotations

from pocketgraph.kernels.shapes.common_rules import unchanged
from pocketgraph.kernels.shapes.rules import shape_rule

shape_rule(
    "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "HSVToRGB", "RGBToHSV", "AdjustContrast", "AdjustHsvInYiq",
    "Addons>AdjustHsvInYiq",
)(unchanged)  # fmt: skip
