"""Federated averaging on Flower, beside averaging by hand: uneven data, sampling, dropouts, NaN."""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import pocketgraph
from command_line import call
from pocketgraph.apps.federated.participant import LocalTraining, Participant, averaged_variables
from pocketgraph.apps.federated.tool import Rounds, simulate
from pocketgraph.errors import GraphError, MissingExtraError, RunError, UsageError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse

Data = dict[str, np.ndarray]


def has_flower() -> bool:
    try:
        import flwr  # noqa: F401
    except ImportError:
        return False
    return True


needs_flower = pytest.mark.skipif(not has_flower(), reason="Flower is not installed (pocketgraph[federated])")


def training(optimizer: str = "sgd", **parameters: float) -> Graph:
    graph = parse(
        """
        x = Placeholder(dtype=float, shape=[?,4])
        w = Const(float [[0.1, 0.0, 0.2], [0.0, -0.1, 0.0], [0.3, 0.0, 0.0], [0.0, 0.2, 0.1]])
        b = Const(float [0.0, 0.1, 0.0])
        product = MatMul(x, w, T=float, transpose_a=false, transpose_b=false)
        logits = BiasAdd(product, b, T=float)
        """
    )
    graph = pocketgraph.add_loss(pocketgraph.trainable(graph), "logits", "softmax_cross_entropy")
    return pocketgraph.minimize(graph, graph.outputs[0], optimizer, learning_rate=0.1, **parameters)


def uneven(clients: int) -> dict[str, Data]:
    """Clients with 1 to many samples, of two of three classes each."""
    rng = np.random.default_rng(0)
    found = {}
    for number in range(clients):
        count = 1 + int(rng.integers(1, 5) ** 2.5)
        labels = (number + rng.integers(0, 2, count)) % 3
        x = rng.normal(size=(count, 4)).astype(np.float32) + np.eye(4, dtype=np.float32)[labels]
        found[f"client {number:02}"] = {"x": x, "labels": labels.astype(np.int64)}
    return found


def softmax_step(values: Mapping[str, np.ndarray], x: np.ndarray, labels: np.ndarray, rate: float) -> Data:
    """One step of gradient descent on the mean cross entropy, in double precision."""
    scores = x @ values["w"] + values["b"]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    back = (shares - np.eye(3)[labels]) / len(x)
    return {"w": values["w"] - rate * x.T @ back, "b": values["b"] - rate * back.sum(axis=0)}


def first_of(graph: Graph) -> Data:
    with pocketgraph.Session(graph) as session:
        session.run([], targets=["init"])
        return {name: session.variables()[name].astype(np.float64) for name in ("w", "b")}


@needs_flower
def test_twenty_uneven_clients_are_averaging_by_hand() -> None:
    graph, data = training(), uneven(20)
    assert len({len(one["labels"]) for one in data.values()}) > 3
    made = simulate(graph, data, Rounds(count=4, clients=20), LocalTraining(epochs=2, batch_size=1000))
    by_hand = first_of(graph)
    for _ in range(4):
        parts = []
        for one in data.values():
            values = by_hand
            for _ in range(2):  # whole batches: the order of samples does not matter
                values = softmax_step(values, one["x"].astype(np.float64), one["labels"], 0.1)
            parts.append((values, len(one["labels"])))
        total = sum(count for _, count in parts)
        by_hand = {name: sum(values[name] * (count / total) for values, count in parts) for name in by_hand}
    for name, value in by_hand.items():
        np.testing.assert_allclose(made.variables[name], value, atol=1e-6)
    assert [one.clients for one in made.rounds] == [{name: len(one["labels"]) for name, one in data.items()}] * 4
    assert made.rounds[-1].loss < made.rounds[0].loss


@needs_flower
def test_the_same_seed_gives_the_same_bytes_and_asks_a_share_of_clients() -> None:
    graph, data = training("adam"), uneven(20)
    runs = [simulate(graph, data, Rounds(5, 20, 0.3, seed=7), LocalTraining(1, 4, 7)) for _ in range(2)]
    for name, value in runs[0].variables.items():
        assert value.tobytes() == runs[1].variables[name].tobytes()
        assert value.dtype == np.float32
    asked = [sorted(one.clients) for one in runs[0].rounds]
    assert [len(one) for one in asked] == [6] * 5
    assert len({tuple(one) for one in asked}) > 1
    assert [sorted(one.clients) for one in simulate(graph, data, Rounds(5, 20, 0.3, seed=8)).rounds] != asked


@needs_flower
def test_a_client_with_nan_is_left_out_and_named() -> None:
    graph, data = training(), uneven(5)
    sound = simulate(graph, {name: one for name, one in data.items() if name != "client 03"}, Rounds(3, 4))
    broken = {**data, "client 03": {**data["client 03"], "x": np.full_like(data["client 03"]["x"], np.nan)}}
    told: list[Any] = []
    made = simulate(graph, broken, Rounds(3, 5), on_round=told.append)
    for name, value in sound.variables.items():
        assert value.tobytes() == made.variables[name].tobytes()
    assert told == list(made.rounds)
    for one in made.rounds:
        assert list(one.left_out) == ["client 03"]
        assert "not finite" in one.left_out["client 03"]
    with pytest.raises(RunError, match=r"no client's result was sound.*client 03"):
        simulate(graph, {"client 03": broken["client 03"]}, Rounds(1, 1))


@needs_flower
def test_what_a_client_may_not_send(monkeypatch: pytest.MonkeyPatch) -> None:
    from pocketgraph.apps.federated.in_process import FlowerClient

    graph, data = training(), uneven(5)
    honest = FlowerClient.fit

    def fit(self: Any, parameters: Any, config: Any) -> Any:
        values, count, metrics = honest(self, parameters, config)
        if self.name == "client 00":
            return [np.full_like(value, np.inf) for value in values], count, metrics
        if self.name == "client 01":
            return values[:1], count, metrics
        if self.name == "client 02":
            return values, count, {"loss": float("nan")}
        if self.name == "client 03":
            raise OSError("killed")
        return values, count, metrics

    alone = simulate(graph, {"client 04": data["client 04"]}, Rounds(1, 1))
    monkeypatch.setattr(FlowerClient, "fit", fit)
    made = simulate(graph, data, Rounds(1, 5))
    assert list(made.rounds[0].clients) == ["client 04"]
    assert list(made.rounds[0].left_out) == [f"client 0{number}" for number in range(4)]
    assert made.rounds[0].left_out["client 03"] == "it did not answer"
    for name, value in alone.variables.items():
        assert value.tobytes() == made.variables[name].tobytes()


@contextlib.contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    line = [sys.executable, "-m", "pocketgraph", "federated", *map(str, arguments)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@needs_flower
def test_a_server_and_clients_of_which_one_is_killed(tmp_path: pathlib.Path) -> None:
    graph, data = training(), uneven(3)
    pocketgraph.save(graph.replace(outputs=()), tmp_path / "plain.pb")
    graph = pocketgraph.add_signatures(graph, {"scores": "logits"})
    pocketgraph.save(graph, tmp_path / "training", form="saved_model")
    for name, one in data.items():
        np.savez(tmp_path / f"{name}.npz", **one)
    rounds = 40
    address = f"127.0.0.1:{free_port()}"
    out = tmp_path / "averaged.npz"
    call_of_server = (tmp_path / "training", f"--rounds={rounds}", "--clients=3", f"--address={address}", "--insecure")
    with running("server", *call_of_server, "-o", out) as server, contextlib.ExitStack() as stack:
        clients = []
        for name in data:
            batch = 1 if name == "client 01" else 1000  # slow, so that it is killed while others wait for it
            epochs = 200 if name == "client 01" else 1
            told = (f"--data={tmp_path / name}.npz", f"--server={address}", "--insecure", f"--name={name}")
            clients.append(
                stack.enter_context(
                    running("client", tmp_path / "training", *told, f"--batch_size={batch}", f"--epochs={epochs}")
                )
            )
        assert server.stdout is not None
        lines = [server.stdout.readline()]
        assert lines[0].startswith("round 1: 3 clients"), lines
        clients[1].kill()
        lines += server.stdout.read().splitlines()
        assert server.wait(300) == 0, lines
        assert clients[0].wait(300) == clients[2].wait(300) == 0
    text = "\n".join(lines)
    assert re.search(r"leaves out client 01: it did not answer", text) or "2 clients" in text
    assert f"round {rounds}: 2 clients" in text
    with np.load(out) as found:
        assert sorted(found) == ["b", "w"]
        assert all(np.isfinite(found[name]).all() for name in found)


@needs_flower
def test_tls_and_a_server_that_is_not_there(tmp_path: pathlib.Path, capsys: Any) -> None:
    graph = training()
    pocketgraph.save(pocketgraph.add_signatures(graph, {"scores": "logits"}), tmp_path / "t", form="saved_model")
    np.savez(tmp_path / "d.npz", **uneven(1)["client 00"])
    address = f"127.0.0.1:{free_port()}"
    client = ("federated", "client", tmp_path / "t", f"--data={tmp_path / 'd.npz'}", f"--server={address}")
    assert call(*client, "--insecure", "--patience=2") == 1
    assert "cannot be reached" in capsys.readouterr().err
    assert call(*client) == 2
    assert "--certificate=ca.pem or --insecure" in capsys.readouterr().err
    assert call(*client, f"--certificate={tmp_path / 'd.npz'}") == 1
    assert "no certificate or key in PEM" in capsys.readouterr().err
    server = ("federated", "server", tmp_path / "t", f"--address={address}", "-o", tmp_path / "o.npz")
    assert call(*server) == 2
    assert "or --insecure" in capsys.readouterr().err
    with socket.socket() as foreign:
        foreign.bind(("127.0.0.1", int(address.rpartition(":")[2])))
        foreign.listen()
        assert call(*server, "--insecure") == 2
    assert "pass another --address" in capsys.readouterr().err
    assert not (tmp_path / "o.npz").exists()


@needs_flower
def test_tls_carries_the_rounds(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("cryptography", reason="cryptography is not installed (pocketgraph[sealed])")
    ca, own, key = certificates(tmp_path)
    pocketgraph.save(pocketgraph.add_signatures(training(), {"scores": "logits"}), tmp_path / "t", form="saved_model")
    np.savez(tmp_path / "d.npz", **uneven(1)["client 00"])
    port = free_port()
    server = (
        tmp_path / "t",
        "--rounds=2",
        "--clients=1",
        f"--address=127.0.0.1:{port}",
        f"--certificates={ca},{own},{key}",
    )
    with running("server", *server, "-o", tmp_path / "averaged.pb") as process:
        told = (f"--data={tmp_path / 'd.npz'}", f"--server=localhost:{port}", f"--certificate={ca}")
        with running("client", tmp_path / "t", *told) as client:
            assert client.wait(300) == 0, client.stdout.read() if client.stdout else ""
        assert process.wait(300) == 0
    with pocketgraph.Session(pocketgraph.load(tmp_path / "averaged.pb")) as session:
        [scores] = session.run(session.graph.outputs or ["logits:0"], {"x:0": np.ones((2, 4), np.float32)})
    assert scores.shape == (2, 3)


def certificates(folder: pathlib.Path) -> tuple[pathlib.Path, ...]:
    """An authority and a server's certificate of it, for localhost."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.datetime.now(datetime.timezone.utc)

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def signed(subject: str, public: Any, by: Any, *, is_authority: bool) -> bytes:
        made = (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named("authority"))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(by, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    files = folder / "ca.pem", folder / "server.pem", folder / "server.key"
    files[0].write_bytes(signed("authority", authority.public_key(), authority, is_authority=True))
    files[1].write_bytes(signed("localhost", own.public_key(), authority, is_authority=False))
    plain = serialization.NoEncryption()
    files[2].write_bytes(own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return files


@needs_flower
def test_the_command_simulates(tmp_path: pathlib.Path, capsys: Any) -> None:
    graph = pocketgraph.add_signatures(training(), {"scores": "logits"})
    pocketgraph.save(graph, tmp_path / "t", form="saved_model")
    (tmp_path / "clients").mkdir()
    data = uneven(3)
    for name, one in data.items():
        np.savez(tmp_path / "clients" / f"{name}.npz", **one)
    out = tmp_path / "averaged.npz"
    line = ("federated", "simulate", tmp_path / "t", tmp_path / "clients", "--rounds=2")
    assert call(*line, "-o", out) == 0
    said = capsys.readouterr().out
    assert said.startswith("round 1: 3 clients")
    made = simulate(graph, data, Rounds(2, 3))
    with np.load(out) as found:
        for name, value in made.variables.items():
            assert found[name].tobytes() == value.tobytes()
    assert call(*line, "-o", tmp_path / "averaged.pb") == 0
    with pocketgraph.Session(tmp_path / "averaged.pb") as session:
        [scores] = session.run(["logits:0"], {"x:0": data["client 00"]["x"]})
    wanted = data["client 00"]["x"] @ made.variables["w"] + made.variables["b"]
    np.testing.assert_allclose(scores, wanted, atol=1e-5)


def test_a_participant_trains_like_train_and_keeps_its_slots() -> None:
    graph, one = training("momentum"), uneven(2)["client 01"]
    participant = Participant(graph, one, LocalTraining(epochs=3, batch_size=1000))
    assert participant.names == ["b", "w"]
    start = participant.values()
    values, _ = participant.round(1, start)
    values, _ = participant.round(2, values)  # the momentum of round 1 goes on
    participant.close()
    with pocketgraph.Session(graph) as session:
        session.run([], targets=["init"])
        pocketgraph.train(session, [one] * 6)
        for name, value in zip(("b", "w"), values, strict=True):
            np.testing.assert_allclose(value, session.variables()[name], atol=1e-6)


def test_what_is_averaged_is_neither_slot_nor_counter() -> None:
    assert averaged_variables(training("adam")) == ["b", "w"]
    with pytest.raises(GraphError, match="does not train"):
        averaged_variables(parse("x = Placeholder(dtype=float, shape=[2])"))


def test_a_session_takes_values_that_fit() -> None:
    with pocketgraph.Session(training()) as session:
        with pytest.raises(RunError, match="no variable 'w' that has a value"):
            session.assign({"w": np.zeros((4, 3), np.float32)})
        session.run([], targets=["init"])
        session.assign({"w": np.ones((4, 3), np.float32)})
        [scores] = session.run(["logits:0"], {"x:0": np.ones((1, 4), np.float32)})
        np.testing.assert_allclose(scores, [[4.0, 4.1, 4.0]], rtol=1e-6)
        for wrong in (np.ones((4, 2), np.float32), np.ones((4, 3))):
            with pytest.raises(RunError, match="the variable 'w' is float32"):
                session.assign({"b": np.zeros(3, np.float32), "w": wrong})
        assert session.variables()["b"].tolist() == pytest.approx([0.0, 0.1, 0.0])


def test_bad_data_and_calls(tmp_path: pathlib.Path, capsys: Any) -> None:
    one = uneven(1)["client 00"]
    with pytest.raises(UsageError, match="not as many samples"):
        Participant(training(), {**one, "labels": one["labels"][:-1]})
    with pytest.raises(UsageError, match="above 0 to 1"):
        Rounds(share=0)
    pocketgraph.save(pocketgraph.add_signatures(training(), {"scores": "logits"}), tmp_path / "t", form="saved_model")
    assert call("federated", "simulate", tmp_path / "t", tmp_path / "none", "-o", tmp_path / "o.npz") == 2
    assert call("federated", "simulate", tmp_path / "t", tmp_path, "-o", tmp_path / "o.npz") == 2
    assert "there is no .npz file" in capsys.readouterr().err
    np.savez(tmp_path / "a.npz", **one)
    assert call("federated", "simulate", tmp_path / "t", tmp_path, "-o", tmp_path / "o.txt") == 2
    assert "neither .npz nor .pb" in capsys.readouterr().err


def test_without_flower_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flwr", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pocketgraph\[federated\]'"):
        simulate(training(), uneven(2))
    assert os.environ.get("FLWR_TELEMETRY_ENABLED") == "0"  # nobody is told of who trains
