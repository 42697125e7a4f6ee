"""Eight bits: calibrating, quantizing and evaluating models.

The way of a model, and the room that holds each step:

    Graph ──float_program.py──▶ float Program ──pipeline.py──▶ int8 Program ──▶ .tflite (serialization/), or .pb
      audio_preprocessing.py  what reads recordings stays outside
      text_cut.py             and so does what reads texts
      canonical/              what a graph spells out becomes part of its layers
      observing/              which values each tensor takes
      ranges/                 which of them get codes
      channels/               equalized or replicated, for finer steps
      mixed_precision/        sensitivity of each tensor, and what stays in float
      fitting/                codes that give a layer's results back
      conversion/             the rewriting, by LiteRT's rules; and back to a GraphDef
    accuracy_budget.py        more in float until little enough is lost
    weight_only.py            weights alone
    evaluation/               models side by side
    report/                   what each layer lost
    core/                     what all of them share
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pocketgraph.lazy_members import lazy_members

if TYPE_CHECKING:
    from pocketgraph.quantization.core.quantization_options import QuantizationOptions
    from pocketgraph.quantization.evaluation.evaluator import evaluate
    from pocketgraph.quantization.evaluation.model_evaluation import Evaluation
    from pocketgraph.quantization.quantized_model import QuantizedModel

__all__ = ["Evaluation", "QuantizationOptions", "QuantizedModel", "evaluate"]

_HOME = {
    "Evaluation": "evaluation.model_evaluation",
    "QuantizationOptions": "core.quantization_options",
    "QuantizedModel": "quantized_model",
    "evaluate": "evaluation.evaluator",
}

__getattr__ = lazy_members(__name__, _HOME)
