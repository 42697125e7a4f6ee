"""The LiteRT engine: our own lowering of graph parts to LiteRT's builtin operators, and what runs them.

The way of a part, and the file that holds each step:

    nodes ──emitter.py + lowerings/──▶ Program ──rewriting/──▶ Program ──writing/──▶ model file ──running/──▶ arrays
           one table row an op          (program.py)  linear,             flatbuffer      cache.py
           static_values.py folds constants           strength_reduction… + schema

``engine.py`` is the front, ``part_lowering.py`` says which nodes of a graph can be lowered. ``executable.py`` and
``cached_executable.py`` are what a warm start needs, ``native/`` is LiteRT's C library, and ``digest.py`` tells models
apart.
"""
