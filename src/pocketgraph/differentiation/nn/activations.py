"""Gradients of activations and of fake quantization."""

from __future__ import annotations

from pocketgraph.differentiation.gradient_table import gradient
from pocketgraph.differentiation.node_gradient import NodeGradient

gradient("Relu", "Relu6", "Elu", "Selu")(lambda op: op.add(f"{op.node.op}Grad", op.grad, op.output()))
gradient("LeakyRelu")(lambda op: op.add("LeakyReluGrad", op.grad, op.inputs[0], **op.attrs("alpha")))
gradient("Softplus", "Softsign")(lambda op: op.add(f"{op.node.op}Grad", op.grad, op.inputs[0]))
gradient("ReluGrad", "Relu6Grad")(lambda op: (op.add(op.node.op, op.grad, op.inputs[1]), op.zeros(op.inputs[1])))


@gradient("LeakyReluGrad")
def leaky_relu_grad(op: NodeGradient) -> tuple[str, str]:
    return op.add("LeakyReluGrad", op.grad, op.inputs[1], **op.attrs("alpha")), op.zeros(op.inputs[1])


@gradient("EluGrad", "SeluGrad")
def elu_grad(op: NodeGradient) -> tuple[str, str]:
    """Of dy times what y says of the slope: below 0 it rises with y as y itself does."""
    dy, y = op.inputs
    by_y = op.add("Select", op.add("Less", y, op.number(0)), op.mul(op.grad, dy), op.zeros(y))
    return op.add(op.node.op, op.grad, y), by_y


@gradient("SoftplusGrad")
def softplus_grad(op: NodeGradient) -> tuple[str, str]:
    """Of ``dy sigmoid(x)``: by x, ``dy / (exp(-x) + 2 + exp(x))``."""
    dy, x = op.inputs
    both = op.add("Add", op.add("Exp", op.add("Neg", x)), op.add("Exp", x))
    slope = op.add("RealDiv", op.mul(op.grad, dy), op.add("Add", both, op.number(2)))
    return op.add("SoftplusGrad", op.grad, x), slope


@gradient("Softmax")
def softmax(op: NodeGradient) -> str:
    weighted = op.add("Sum", op.mul(op.grad, op.output()), op.const([-1]), keep_dims=True)
    return op.mul(op.add("Sub", op.grad, weighted), op.output())


@gradient("LogSoftmax")
def log_softmax(op: NodeGradient) -> str:
    total = op.add("Sum", op.grad, op.const([-1]), keep_dims=True)
    return op.add("Sub", op.grad, op.mul(total, op.add("Exp", op.output())))


@gradient("FakeQuantWithMinMaxArgs")
def fake_quantization(op: NodeGradient) -> str:
    """Straight through, inside the range."""
    layer = op.attrs("min", "max", "num_bits", "narrow_range")
    return op.add("FakeQuantWithMinMaxArgsGradient", op.grad, op.inputs[0], **layer)


@gradient("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quantization_by_tensors(op: NodeGradient) -> tuple[str, str, str]:
    found = op.add(f"{op.node.op}Gradient", op.grad, *op.inputs, **op.attrs("num_bits", "narrow_range"))
    return found, f"{found}:1", f"{found}:2"


gradient("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3")(lambda op: op.grad)


@gradient("QuantizeAndDequantizeV4")
def quantization_inside_range(op: NodeGradient) -> tuple[str, str, str]:
    """Straight through, inside the range; a range of its own gets what lies beyond it."""
    found = op.add("QuantizeAndDequantizeV4Grad", op.grad, *op.inputs, **op.attrs("axis"))
    return found, f"{found}:1", f"{found}:2"
