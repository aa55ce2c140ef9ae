"""Hosts joined by a bridge: the commands, and that the hosts reach each other."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from hpc_train.lab.bridged_hosts import BridgedHost, bridged

HOSTS = [
    BridgedHost(name=f"h{n}", namespace=f"bridged-test-h{n}", address=f"10.79.200.{n}/24")
    for n in (1, 2)
]
BRIDGE = "bridged-test"
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and ip"
)


@needs_root
def test_hosts_reach_each_other() -> None:
    try:
        for command in bridged(BRIDGE, HOSTS):
            subprocess.run(command, check=True)
        connect = ("ip", "netns", "exec", HOSTS[0].namespace, "python3", "-c", CONNECT)
        serve = ("ip", "netns", "exec", HOSTS[1].namespace, "python3", "-c", SERVE)
        with subprocess.Popen(serve, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            assert subprocess.run(connect, check=False, timeout=240).returncode == 0
            assert server.wait(240) == 0
    finally:
        for name in (BRIDGE, *(host.namespace for host in HOSTS)):
            subprocess.run(("ip", "netns", "del", name), check=False)


SERVE = """
import socket
server = socket.create_server(("10.79.200.2", 5000))
print("ready", flush=True)
server.accept()
"""
CONNECT = """
import socket
socket.create_connection(("10.79.200.2", 5000), 30).close()
"""
