"""Server, clients and simulation of federated averaging; Flower carries the messages, nothing here does."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pocketgraph.apps.federated.participant import LocalTraining, Participant, first_values
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.errors import FormatError, MissingExtraError, PocketgraphError, RunError, UsageError, option
from pocketgraph.formats.files import opened, reason
from pocketgraph.graph import Graph
from pocketgraph.graph.tensor import Array

if TYPE_CHECKING:
    from pocketgraph.apps.federated.averaging import Round


@dataclass(frozen=True)
class Averaged:
    """What was learned together.

    Attributes:
        variables: by name, those that were averaged.
        rounds: what came of each.
    """

    variables: dict[str, Array]
    rounds: tuple[Round, ...]


@dataclass(frozen=True)
class Rounds:
    """How rounds go.

    Attributes:
        count: how many.
        clients: how many must be there before the first.
        share: of the clients that are there, how many are asked in a round, above 0 to 1.
        seed: of the choice.
        patience: seconds to wait for clients, and for the results of a round.
    """

    count: int = 10
    clients: int = 2
    share: float = 1.0
    seed: int = 0
    patience: float = 600.0

    def __post_init__(self) -> None:
        if self.count < 1 or self.clients < 1 or not 0 < self.share <= 1:
            raise UsageError("rounds and clients are 1 or more, and the share of clients is above 0 to 1")


def simulate(
    graph: Graph,
    data: Mapping[str, SampleSource],
    rounds: Rounds = Rounds(),
    how: LocalTraining = LocalTraining(),
    on_round: Callable[[Round], None] | None = None,
) -> Averaged:
    """Federated averaging of clients in this process: Flower's own rounds, without a network.

    Args:
        graph: a training graph.
        data: each client's, by the client's name.
        rounds: how rounds go; all clients are there from the start.
        how: how each client trains.
        on_round: told of each round.

    Raises:
        MissingExtraError: Flower is not installed.
        GraphError, UsageError, RunError: as in Participant, or in no round was any result sound.
    """
    _require_flower()
    from pocketgraph.apps.federated.in_process import register

    strategy, server = _server(
        graph, Rounds(rounds.count, len(data), rounds.share, rounds.seed, rounds.patience), on_round
    )
    participants = {name: Participant(graph, source, how) for name, source in data.items()}
    try:
        register(server.client_manager(), participants)
        server.set_max_workers(1)  # sessions use all cores as it is
        server.fit(num_rounds=rounds.count, timeout=None)
    finally:
        for one in participants.values():
            one.close()
    return _made(graph, strategy)


def serve(
    graph: Graph,
    address: str,
    certificates: Sequence[str] = (),
    *,
    insecure: bool = False,
    rounds: Rounds = Rounds(),
    on_round: Callable[[Round], None] | None = None,
) -> Averaged:
    """Waits for clients and averages what they learn.

    Args:
        graph: the training graph that the clients have too.
        address: ``host:port`` to listen on.
        certificates: files in PEM: of the authority, of the server, and the server's key.
        insecure: without TLS; as Flower's own servers, it is one or the other.
        rounds: how rounds go.
        on_round: told of each round.

    Raises:
        MissingExtraError: Flower is not installed.
        UsageError: neither certificates nor ``insecure``, or the address cannot be listened on.
        FormatError: a certificate cannot be read.
        RunError: too few clients came, or no result was sound.
    """
    _require_flower()
    if insecure == bool(certificates) or len(certificates) not in (0, 3):
        raise UsageError(
            "a server needs the certificates of the authority and its own, and its key; or is insecure on purpose",
            hint=f"{option('certificates')}=ca.pem,server.pem,server.key or {option('insecure')}",
        )
    read = tuple(map(_pem, certificates))
    _check_free(address)
    from flwr.server import ServerConfig, start_server

    strategy, server = _server(graph, rounds, on_round)
    start_server(
        server_address=address,
        server=server,
        config=ServerConfig(num_rounds=rounds.count, round_timeout=rounds.patience),
        certificates=read or None,
    )
    return _made(graph, strategy)


def take_part(
    graph: Graph,
    data: SampleSource,
    address: str,
    certificate: str = "",
    *,
    insecure: bool = False,
    name: str = "",
    how: LocalTraining = LocalTraining(),
    patience: float = 60.0,
) -> int:
    """Trains whenever the server asks, until it is done. The data stay here; only variables, counts and losses go.

    Args:
        graph: the training graph that the server has too.
        data: of this client.
        address: ``host:port`` of the server.
        certificate: of the authority, a file in PEM.
        insecure: without TLS.
        name: what the server calls this client.
        how: how it trains.
        patience: seconds to try to reach the server.

    Returns:
        in how many rounds it took part.

    Raises:
        MissingExtraError: Flower is not installed.
        UsageError: neither a certificate nor ``insecure``.
        PocketgraphError: there is no such server.
        GraphError, FormatError: as in Participant.
    """
    _require_flower()
    if insecure == bool(certificate):
        raise UsageError(
            "a client needs the certificate of the server's authority, or is insecure on purpose",
            hint=f"{option('certificate')}=ca.pem or {option('insecure')}",
        )
    root = _pem(certificate) if certificate else None
    from pocketgraph.apps.federated.in_process import FlowerClient

    participant = Participant(graph, data, how)
    client = FlowerClient(name or f"{socket.gethostname()}-{os.getpid()}", participant)
    import grpc
    from flwr.client import start_client

    try:
        start_client(
            server_address=address, client=client, root_certificates=root, insecure=insecure, max_wait_time=patience
        )
    except grpc.RpcError as error:
        details = getattr(error, "details", lambda: "")() or str(error)
        raise PocketgraphError(f"the server cannot be reached: {details}", where=address) from None
    finally:
        participant.close()
    return client.rounds


def _require_flower() -> None:
    os.environ.setdefault(
        "FLWR_TELEMETRY_ENABLED", "0"
    )  # Flower tells its makers of each start unless it is told not to
    try:
        import flwr  # noqa: F401 (only whether it is there)
    except ImportError:
        raise MissingExtraError(
            "federated averaging needs Flower, which is not installed", hint="pip install 'pocketgraph[federated]'"
        ) from None
    logging.getLogger("flwr").setLevel(logging.CRITICAL)  # what came of a round is told by on_round


def _server(graph: Graph, rounds: Rounds, on_round: Callable[[Round], None] | None) -> tuple[Any, Any]:
    from flwr.server import Server, SimpleClientManager

    from pocketgraph.apps.federated.averaging import SoundAverage

    _, first = first_values(graph)
    strategy = SoundAverage(first, rounds.clients, rounds.share, rounds.seed, rounds.patience, on_round)
    return strategy, Server(client_manager=SimpleClientManager(), strategy=strategy)


def _made(graph: Graph, strategy: Any) -> Averaged:
    names, _ = first_values(graph)
    if not any(one.clients for one in strategy.rounds):
        left_out = next((f"{name}: {why}" for one in strategy.rounds for name, why in one.left_out.items()), "")
        raise RunError("no client's result was sound in any round", hint=left_out)
    return Averaged(dict(zip(names, strategy.values, strict=True)), tuple(strategy.rounds))


def _pem(path: str) -> bytes:
    try:
        with opened(path) as file:
            data = file.read()
    except OSError as error:
        raise FormatError(f"the certificate cannot be read: {reason(error)}", where=path) from None
    if b"-----BEGIN" not in data:
        raise FormatError("this is no certificate or key in PEM", where=path)
    return data


def _check_free(address: str) -> None:
    """Raises UsageError when an address cannot be listened on."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise UsageError(f"'{address}' is no address", hint="HOST:PORT, such as 127.0.0.1:8080")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), int(port)))
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"{address} cannot be listened on: {error}", hint=f"pass another {option('address')}"
            ) from None
