"""Ports that two servers cannot share by accident."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hordechat.local import places, ports

CLAIM = "import sys; from hordechat.local import ports; ports.claim(int(sys.argv[1]))"


@pytest.fixture
def port() -> Iterator[int]:
    port = ports.free_port()
    yield port
    ports.release(port)


def claim_elsewhere(port: int) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(places.PROJECT)}
    command = [sys.executable, "-c", CLAIM, str(port)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_free_ports_differ(port: int) -> None:
    other = ports.free_port()
    ports.release(other)

    assert other != port


def test_a_port_is_held_before_anyone_listens_on_it(port: int) -> None:
    refused = claim_elsewhere(port)
    ports.release(port)
    taken = claim_elsewhere(port)

    assert refused.returncode == 1
    assert refused.stderr == (
        f"Port {port} is taken by another program; stop that program or choose another port with --port.\n"
    )
    assert taken.returncode == 0


def test_a_port_that_allows_sharing_still_counts_as_taken(port: int) -> None:
    ports.release(port)
    with socket.socket() as sharing:
        sharing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sharing.bind((ports.HOST, port))
        sharing.listen()

        assert claim_elsewhere(port).returncode == 1


def test_a_port_is_free_again_right_after_a_connection_was_closed(port: int) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((ports.HOST, port))
        server.listen()
        with socket.create_connection((ports.HOST, port)):
            accepted, _ = server.accept()
            accepted.close()  # this side first: it is the one that lingers
    ports.release(port)

    assert claim_elsewhere(port).returncode == 0
