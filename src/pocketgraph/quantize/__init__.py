"""Eight bits: calibrating, quantizing and judging models.

The way of a model, and the file that holds each step:

    Graph ──lowering.py──▶ float Program ──pipeline.py──▶ int8 Program ──▶ .tflite
                             observe.py, choose_range.py   which values, which range
                             equalize.py                   even channels
                             harm.py                       what hurts, what stays in float
                             reconstruct.py, rounding.py   codes that give a layer's results back
                             convert.py, operators.py      the rewriting, by LiteRT's rules
    evaluate.py, judge.py   models side by side            layers.py, page.py   the report on every layer
"""
