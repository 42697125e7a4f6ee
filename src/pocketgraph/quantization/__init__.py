"""Eight bits: calibrating, quantizing and evaluating models.

The way of a model, and the room that holds each step:

    Graph ──float_program.py──▶ float Program ──pipeline.py──▶ int8 Program ──▶ .tflite (serialization/), or .pb
      audio_preprocessing.py  what reads recordings stays outside
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
