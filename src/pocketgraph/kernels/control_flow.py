"""What loops keep their values in: TensorArrays, TensorLists, stacks. (Switch, Merge and frames are the engine's.)"""

from pocketgraph.kernels import stack, tensor_array, tensor_list

__all__ = ["stack", "tensor_array", "tensor_list"]
