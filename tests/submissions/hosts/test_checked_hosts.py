"""Hosts before a submission: enough of them, with programs, and with host names of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.errors import SubmitError
from hpc_train.model.plan import LaunchPlan
from hpc_train.submissions.hosts.checked_hosts import check_hosts
from tests.sites.test_host_list import JOB, plan_of, write


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program named ssh on PATH, which answers as the file of a host says."""
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/bash\ncd {tmp_path}; exec bash "${{@: -2:1}}.sh"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def say(folder: Path, host: str, *lines: str) -> None:
    text = "\n".join(("ANSWER", *lines, "END"))
    (folder / f"{host}.sh").write_text(f"cat <<'THERE'\n{text}\nTHERE\n")


def plan(folder: Path, nodes: int = 2) -> LaunchPlan:
    job = {**JOB, "resources": {"nodes": nodes}}
    return plan_of(write(folder), job)


def test_hosts_that_have_what_is_needed(ssh: Path) -> None:
    say(ssh, "gpu1", "boot 1", "hostname a")
    say(ssh, "gpu2", "boot 2", "hostname b")
    check_hosts(ssh, [plan(ssh)])


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (("hostname b", "lacks flock", "lacks bash 4"), "gpu2: has no flock, bash 4"),
        (("hostname a",), "gpu2: has the host name of gpu1, a; NCCL takes them for one"),
    ],
)
def test_a_host_that_cannot_be_used(ssh: Path, second: tuple[str, ...], message: str) -> None:
    say(ssh, "gpu1", "hostname a")
    say(ssh, "gpu2", *second)
    with pytest.raises(SubmitError) as failure:
        check_hosts(ssh, [plan(ssh)])
    assert "lab2: 2 hosts are needed, and 1 of 2 can be used:" in failure.value.message
    assert message in failure.value.message
    # The other one is enough for a job on one host.
    check_hosts(ssh, [plan(ssh, nodes=1)])


def test_a_host_that_does_not_answer(ssh: Path) -> None:
    say(ssh, "gpu1", "hostname a")
    (ssh / "gpu2.sh").write_text("echo 'Host key verification failed.' >&2; exit 255\n")
    with pytest.raises(SubmitError) as failure:
        check_hosts(ssh, [plan(ssh)])
    assert "gpu2: Host key verification failed." in failure.value.message
    assert failure.value.hint == "ssh gpu2 true   shows what ssh says"
