"""What a trial lowered is the program that lowering for its own sake gives, or it is not given."""

import numpy as np

from litert.parts import compiled_part, lowered
from pocketgraph.graph import DType, Graph, Shape
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.shapes import infer
from pocketgraph.litert.part_lowering import Trial
from pocketgraph.litert.program import Program
from pocketgraph.litert.rewriting.optimize import optimize

FLOAT = DType.named("float")
GRAPH = parse("""
    x = Placeholder(dtype=float, shape=[2,4])
    w = Const(float[4,4] 0.5)
    c = Const(float[4] 1.5)
    a = MatMul(x, w, T=float)
    b = BiasAdd(a, c, T=float)
    d = Relu(b, T=float)
    e = CumulativeLogsumexp(d, axis, T=float, Tidx=int32)
    axis = Const(int32 1)
    f = Tanh(e, T=float)
    y = Mul(f, d, T=float)
""")
SPECS = {"x:0": (FLOAT, (2, 4))}


def trial_of(graph: Graph, outputs: list[str]) -> Trial:
    inferred = infer(graph, {"x:0": (FLOAT, Shape((2, 4)))})
    nodes = [node for node in graph if node.op not in ("Placeholder", "Const")]
    return Trial(graph, nodes, outputs, inferred, ["x:0"])


def described(program: Program | None) -> list[object]:
    assert program is not None
    number = {value: index for index, value in enumerate(program.inputs)}
    found: list[object] = []
    for operation in program.operations:
        taken = [
            None if v is None else number.get(v) if v.constant is None else v.constant.numpy().tolist()
            for v in operation.inputs
        ]
        for value in operation.outputs:
            number[value] = len(number)
        found.append((operation.code, taken, operation.options, [v.shape for v in operation.outputs]))
    return [*found, [number[v] for v in program.outputs]]


def test_reasons_are_given_in_the_order_of_the_nodes() -> None:
    assert list(trial_of(GRAPH, ["y:0"]).reasons) == ["e"]


def test_a_part_is_as_if_lowered_for_itself() -> None:
    nodes = [GRAPH[name] for name in "abd"]
    program = trial_of(GRAPH, ["y:0"]).program(nodes, ["x:0"], ["d:0"], SPECS)
    assert program is not None
    optimize(program)
    assert described(program) == described(lowered(GRAPH, nodes, ["x:0"], ["d:0"], SPECS))


def test_a_part_behind_a_refused_node_is_too() -> None:
    specs = {"e:0": (FLOAT, (2, 4)), "d:0": (FLOAT, (2, 4))}
    nodes = [GRAPH["f"], GRAPH["y"]]
    program = trial_of(GRAPH, ["y:0"]).program(nodes, ["e:0", "d:0"], ["y:0"], specs)
    assert described(program) == described(lowered(GRAPH, nodes, ["e:0", "d:0"], ["y:0"], specs))


def test_a_part_whose_inputs_are_not_all_named_is_not_given() -> None:
    specs = {"e:0": (FLOAT, (2, 4))}
    assert trial_of(GRAPH, ["y:0"]).program([GRAPH["f"], GRAPH["y"]], ["e:0"], ["y:0"], specs) is None


def test_a_program_is_given_once() -> None:
    trial = trial_of(GRAPH, ["d:0"])
    nodes = [GRAPH[name] for name in "abd"]
    assert trial.program(nodes, ["x:0"], ["d:0"], SPECS) is not None
    assert trial.program(nodes, ["x:0"], ["d:0"], SPECS) is None


def test_another_type_or_shape_of_an_input_is_another_program() -> None:
    nodes = [GRAPH[name] for name in "abd"]
    assert trial_of(GRAPH, ["d:0"]).program(nodes, ["x:0"], ["d:0"], {"x:0": (FLOAT, (3, 4))}) is None
    assert trial_of(GRAPH, ["d:0"]).program(nodes[:2], ["x:0"], ["d:0"], SPECS) is None  # d itself is missing


def test_compiling_with_a_trial_computes_the_same() -> None:
    nodes = [GRAPH[name] for name in "abd"]
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    results = []
    for trial in (None, trial_of(GRAPH, ["d:0"])):
        executable = compiled_part(GRAPH, nodes, ["x:0"], ["d:0"], SPECS, trial=trial)
        results.append(executable.run([x])[0])
        executable.close()
    np.testing.assert_array_equal(*results)
    np.testing.assert_allclose(results[0], np.maximum(x @ np.full((4, 4), 0.5) + 1.5, 0), rtol=1e-5, atol=1e-6)
