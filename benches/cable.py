"""A network namespace at the end of a cable whose rate is ours: needs Linux, root, and iproute2.

Within `cable`, a program that `WITHIN` starts finds this machine at `ADDRESS`, and `limit` says how fast.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from tests.servers import Missing

NAMESPACE, OUTER, INNER = "longshore", "longshore0", "longshore1"
#: Two addresses of the block that is kept for measuring networks (RFC 2544).
ADDRESS, OTHER = "198.18.0.1", "198.18.0.2"
WITHIN = ("ip", "netns", "exec", NAMESPACE)
#: Also what a run that was killed has left, so nothing of it has to be there.
REMOVE = f"ip link delete {OUTER}; ip netns delete {NAMESPACE}"


@contextlib.contextmanager
def cable() -> Iterator[None]:
    """Lay the cable; it goes when this Python does, however that ends. `Missing` says why it cannot be had."""
    if sys.platform != "linux" or os.getuid() != 0:
        reason = "network namespaces need Linux and root"
        raise Missing(reason, "run as root")
    if not (shutil.which("ip") and shutil.which("tc")):
        reason = "ip and tc are not installed"
        raise Missing(reason, "apt install iproute2")
    _quietly(REMOVE, subprocess.DEVNULL).wait()
    # Its input ends when this Python does.
    remover = _quietly(f"read -r _; {REMOVE}", subprocess.PIPE)
    try:
        _lay()
        yield
    finally:
        remover.communicate()


def limit(rate: str) -> None:
    """Bound what this machine sends into the cable: "1gbit"."""
    _run(f"tc qdisc replace dev {OUTER} root tbf rate {rate} burst 256kb latency 50ms")


def _lay() -> None:
    _run(f"ip netns add {NAMESPACE}")
    _run(f"ip link add {OUTER} type veth peer name {INNER} netns {NAMESPACE}")
    _run(f"ip address add {ADDRESS}/30 dev {OUTER}")
    _run(f"ip -n {NAMESPACE} address add {OTHER}/30 dev {INNER}")
    _run(f"ip link set {OUTER} up")
    _run(f"ip -n {NAMESPACE} link set {INNER} up")
    _run(f"ip -n {NAMESPACE} link set lo up")
    limit("10gbit")


def _run(command: str) -> None:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    if done.returncode:
        reason = f"`{command}` failed: {' '.join(done.stderr.split())}"
        raise Missing(reason, "it takes a kernel with namespaces, veth and tbf, and the right to use them")


def _quietly(script: str, feed: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", script],  # noqa: S607  every system has its own
        stdin=feed,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # A Ctrl-C at the terminal is not for what cleans up after it.
    )
