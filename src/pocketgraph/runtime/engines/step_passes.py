"""The step passes: what makes the reference engine's steps fewer or quicker while a program is built.

Each is switched off by its name (``Session(without=…)``, ``POCKETGRAPH_WITHOUT``); the results are the same without it.
"""

STEP_PASSES = {
    "dynamic_parts": "heavy parts of loops, branches and functions are compiled when they run",
    "fused_lookups": "a lookup of embeddings by sparse ids is one step",
    "common_subexpressions": "nodes that compute the same from the same run once",
    "specialized_kernels": "what follows from constant inputs of small ops is worked out before the run",
    "loop_invariants": "what a round computes of tensors that stay the same is computed in the first round",
    "suppression_on_litert": "NonMaxSuppression of many boxes is LiteRT's",
    "step_codegen": "steps that run often are written out as one Python function",
}
"""What each does, by its name."""
