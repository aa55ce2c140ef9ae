"""Which hosts cannot connect to which, and without which of them the others can."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from hpc_train.data_folders import data_file
from hpc_train.submissions.hosts.rendezvous_check import Gap, Place, apart, shown

HOSTS = [Place(f"gpu{n}", f"10.0.0.{n}") for n in (1, 2, 3)]


def gap(of: int, to: int) -> Gap:
    return Gap(of=f"gpu{of}", to=f"gpu{to}", place=f"10.0.0.{to}:61000")


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ([], {}),
        ([gap(2, 1)], {"gpu2": "cannot connect to 10.0.0.1:61000 of gpu1"}),
        ([gap(1, 2)], {"gpu2": "is not reached by gpu1 at 10.0.0.2:61000"}),
        ([gap(2, 1), gap(3, 1)], {"gpu1": "is not reached by gpu2 at 10.0.0.1:61000"}),
        (
            [gap(1, 2), gap(2, 3), gap(3, 1)],
            {
                "gpu3": "is not reached by gpu2 at 10.0.0.3:61000",
                "gpu2": "is not reached by gpu1 at 10.0.0.2:61000",
            },
        ),
    ],
)
def test_the_hosts_that_are_left_out(found: list[Gap], wrong: dict[str, str]) -> None:
    assert apart(HOSTS, found) == wrong


def test_a_host_listens_on_its_addresses_of_ipv4_and_ipv6(tmp_path: Path) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("needs IPv6")
    script = tmp_path / "call.sh"
    script.write_text(f"set -- listen 61000 2000\n{data_file('on_host.sh').read_text()}")
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=False)
    found = dict(line.split() for line in done.stdout.splitlines() if line.count(" ") == 1)
    try:
        for address in ("127.0.0.1", "::1"):
            socket.create_connection((address, int(found["port"])), timeout=200).close()
    finally:
        os.kill(int(found["pid"]), signal.SIGTERM)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("10.0.0.2:61000", "10.0.0.2:61000"),
        ("gpu2:1", "gpu2:1"),
        ("fd00::1:61000", "[fd00::1]:61000"),
    ],
)
def test_an_address_of_ipv6_is_in_brackets(place: str, text: str) -> None:
    assert shown(place) == text
