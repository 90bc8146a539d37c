"""TCP ports of the local stack, each held by one process of this machine at a time.

Granian binds with SO_REUSEPORT, so two servers on one port would share it silently. A port is therefore bound here
first without that option, and a lock on its number is kept until this process ends.
"""

import socket
import sys

from hordechat.local.refusals import Refused

HOST = "127.0.0.1"
ATTEMPTS = 50

_locks: dict[int, socket.socket] = {}


class PortTaken(Refused):
    """Another program listens on the port or is about to."""


def claim(port: int) -> None:
    """Keep a port for this process until it ends.

    Raises:
        PortTaken: someone else has it.
    """
    if port in _locks:
        return
    lock = socket.socket(socket.AF_UNIX)
    try:
        if sys.platform == "linux":
            # An abstract name lives in the same network namespace as the port and goes with its process.
            lock.bind(f"\0hordechat-port-{port}")
        with socket.socket() as probe:
            # Without this a connection of an earlier server, closed a minute ago, would count as taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            probe.listen(1)
    except PermissionError as error:
        lock.close()
        raise PortTaken(f"Port {port} is not open to this user; choose one from 1024 up with --port.") from error
    except OSError as error:
        lock.close()
        raise PortTaken(
            f"Port {port} is taken by another program; stop that program or choose another port with --port."
        ) from error
    _locks[port] = lock


def free_port() -> int:
    """Find a port nobody uses and keep it for this process until it ends."""
    for _ in range(ATTEMPTS):
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        try:
            claim(port)
        except PortTaken:
            continue
        return port
    raise PortTaken("No free TCP port was found on this machine.")


def release(port: int) -> None:
    """Give a port back before this process ends."""
    if port in _locks:
        _locks.pop(port).close()
