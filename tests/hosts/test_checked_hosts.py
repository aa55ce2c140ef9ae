"""Hosts before a submission: enough of them, each usable by itself, and all of them together."""

import os
import pwd
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from hpc_train.base.data_folders import data_file
from hpc_train.base.errors import HostsError
from hpc_train.hosts.executor import check_hosts
from hpc_train.hosts.queue_runner import candidates
from hpc_train.hosts.run_on_hosts import Gap, apart, take_hosts
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.run import RunFolder
from hpc_train.runs.run_queue import QueuedRuns
from hpc_train.sites.profile import Host
from tests.sites.test_host_list import JOB, SITE as TWO, plan_of, write

# Hosts that are this machine.
SITE = TWO.replace("10.0.0.", "127.0.0.")


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


def machine(folder: Path, host: str, **programs: str) -> None:
    """Let bash be a host, which has programs of its own first on PATH."""
    own = folder / f"{host}-programs"
    own.mkdir(exist_ok=True)
    for name, text in {"uname": f"echo {host}", **programs}.items():
        (own / name).write_text(f"#!/bin/bash\n{text}\n")
        (own / name).chmod(0o755)
    (folder / f"{host}.sh").write_text(f"PATH={own}:$PATH exec bash -s\n")


def refusal(folder: Path, plans: list[LaunchPlan]) -> HostsError:
    with pytest.raises(HostsError) as failure:
        check_hosts(folder, plans)
    assert failure.value.exit_code == 2
    return failure.value


def plan(folder: Path, nodes: int = 2) -> LaunchPlan:
    job = {**JOB, "resources": {"nodes": nodes}}
    return plan_of(write(folder, SITE), job)


def test_hosts_that_have_what_is_needed(ssh: Path) -> None:
    say(ssh, "gpu1", "boot 1", "hostname a")
    say(ssh, "gpu2", "boot 2", "hostname b")
    assert check_hosts(ssh, [plan(ssh)]) == ()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (("hostname b", "lacks flock", "lacks bash 4"), "gpu2: has no flock, bash 4"),
        (("hostname b", "readonly /home/me"), "gpu2: cannot write to /home/me"),
        (("hostname a",), "gpu2: has the host name of gpu1, a; NCCL treats both as one host"),
    ],
)
def test_a_host_that_cannot_be_used(ssh: Path, second: tuple[str, ...], message: str) -> None:
    say(ssh, "gpu1", "hostname a")
    say(ssh, "gpu2", *second)
    with pytest.raises(HostsError) as failure:
        check_hosts(ssh, [plan(ssh)])
    assert "lab2: 2 hosts are needed, and 1 of 2 can be used:" in failure.value.message
    assert message in failure.value.message
    # The other one is enough for a job on one host.
    check_hosts(ssh, [plan(ssh, nodes=1)])


def test_a_host_that_does_not_answer(ssh: Path) -> None:
    say(ssh, "gpu1", "hostname a")
    (ssh / "gpu2.sh").write_text("echo 'Host key verification failed.' >&2; exit 255\n")
    with pytest.raises(HostsError) as failure:
        check_hosts(ssh, [plan(ssh)])
    assert "gpu2: Host key verification failed." in failure.value.message
    assert failure.value.hint == "ssh gpu2 true   shows what ssh says"


def metadata(version: str) -> str:
    """Return a program that is a Python with a version of torch, or with none."""
    return f"echo version torch {version}" if version else "exit 1"


@pytest.mark.parametrize(
    ("second", "message", "command"),
    [
        ("2.6.0+cu124", "gpu2: has torch 2.6.0+cu124, and gpu1 has torch 2.7.1", "torch 2.7.1"),
        ("", "gpu2: has no torch 2.7.1+cu126, which gpu1 has", "ssh gpu2   to install torch"),
    ],
)
def test_hosts_with_different_torch(ssh: Path, second: str, message: str, command: str) -> None:
    machine(ssh, "gpu1", python=metadata("2.7.1+cu126"))
    machine(ssh, "gpu2", python=metadata(second))
    refused = refusal(ssh, [plan(ssh)])
    assert message in refused.message
    assert command in refused.hint
    # Each of them can run a job by itself.
    assert check_hosts(ssh, [plan(ssh, nodes=1)]) == ()


def test_the_version_of_torch_is_that_after_the_setup(ssh: Path) -> None:
    site = write(ssh, SITE + "setup: ['export VERSION=2.7.1']\n")
    for host in ("gpu1", "gpu2"):
        machine(ssh, host, python="echo version torch ${VERSION:-$RANDOM}")
    assert check_hosts(ssh, [plan_of(site, JOB)]) == ()


def test_hosts_with_different_mpirun(ssh: Path) -> None:
    for host, version in (("gpu1", "4.1.4"), ("gpu2", "5.0.3")):
        mpirun = f"echo 'mpirun (Open MPI) {version}'"
        machine(ssh, host, mpirun=mpirun, python=metadata("2.7.1"))
    job = plan_of(write(ssh, SITE), {**JOB, "launcher": "mpirun"})
    refused = refusal(ssh, [job])
    assert (
        "gpu2: has mpirun (Open MPI) 5.0.3 and torch 2.7.1, and gpu1 has mpirun" in refused.message
    )
    # torchrun does not need it.
    assert check_hosts(ssh, [plan(ssh)]) == ()


def test_two_of_three_hosts_with_the_same_torch_are_enough(ssh: Path) -> None:
    for host, version in (("gpu1", "2.6.0"), ("gpu2", "2.7.1"), ("gpu3", "2.7.1")):
        machine(ssh, host, python=metadata(version))
    third = SITE.replace("launchers:", "  - {name: gpu3, address: 127.0.0.13}\nlaunchers:")
    job = plan_of(write(ssh, third), JOB)
    assert check_hosts(ssh, [job]) == ("gpu1",)
    used = candidates(job, QueuedRuns(runs=(), apart=("gpu1",)))
    assert [host.name for host in used] == ["gpu2", "gpu3"]


_SMI = """\
case "$*" in *--query-gpu=index,memory.used,memory.total*) printf '%b' '{}' ;; esac"""
_BUSY = "0, 512, 81559\\n1, 72704, 81559\\n"


@pytest.mark.parametrize(
    "programs",
    [
        {"nvidia-smi": _SMI.format(_BUSY)},
        {
            "rocm-smi": "printf '%b' 'device,VRAM Total Memory (B),VRAM Total Used Memory (B)\\n"
            f"card0,{81559 << 20},{512 << 20}\\ncard1,{81559 << 20},{72704 << 20}\\n'"
        },
    ],
)
def test_a_gpu_in_use_is_named(ssh: Path, programs: dict[str, str]) -> None:
    machine(ssh, "gpu1")
    machine(ssh, "gpu2", **programs)
    text = SITE.replace("gpu1, ", "gpu1, gpus: 2, ").replace("gpu2, ", "gpu2, gpus: 2, ")
    refused = refusal(ssh, [plan_of(write(ssh, text), JOB)])
    assert "gpu2: has 71.0 of 79.6 GiB of GPU 1 in use" in refused.message
    assert "ssh gpu2 nvidia-smi" in refused.hint
    # GPU 0 is free, and a job on one GPU of each host uses only that.
    one = {**JOB, "resources": {"nodes": 2, "tasks_per_node": 1, "gpus_per_node": 1}}
    assert check_hosts(ssh, [plan_of(write(ssh, text), one)]) == ()
    assert check_hosts(ssh, [plan(ssh)]) == ()


def logind(*lines: str, linger: str = "no") -> str:
    text = "\\n".join(lines)
    return f"[ \"$1\" = show-user ] && echo Linger={linger} || printf '%b\\n' '{text}'"


@pytest.mark.parametrize(
    ("lines", "ended"),
    [
        (("KillUserProcesses=yes",), True),
        (("KillUserProcesses=no",), False),
        (("KillUserProcesses=yes", "KillExcludeUsers=other ME"), False),
        (("KillUserProcesses=no", "KillOnlyUsers=ME"), True),
        (("KillUserProcesses=yes", "KillOnlyUsers=other"), False),
    ],
)
def test_a_host_that_ends_the_processes_of_who_logs_out(
    ssh: Path, lines: tuple[str, ...], ended: bool
) -> None:
    me = pwd.getpwuid(os.getuid()).pw_name
    program = logind(*(line.replace("ME", me) for line in lines))
    machine(ssh, "gpu1")
    machine(ssh, "gpu2", loginctl=program)
    if not ended:
        assert check_hosts(ssh, [plan(ssh)]) == ()
        return
    refused = refusal(ssh, [plan(ssh)])
    assert "gpu2: logind ends runs there when the last connection by ssh ends" in refused.message
    assert refused.hint == "ssh gpu2 loginctl enable-linger   keeps them running"


HOSTS = [Host(name=f"gpu{n}", address=f"10.0.0.{n}") for n in (1, 2, 3)]


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
    ("second", "nodes", "lasting"),
    [
        ("busy r1 of me", 2, False),
        ("gpu_in_use 0 9000 10000", 2, False),
        ("fault Read-only file system: /home/me/hpctrain", 2, True),
        # The other host is enough, once it is free.
        ("fault Read-only file system: /home/me/hpctrain", 1, False),
    ],
)
def test_a_fault_that_lasts_is_not_waited_for(
    ssh: Path, second: str, nodes: int, lasting: bool
) -> None:
    say(ssh, "gpu1", "busy r2 of you")
    say(ssh, "gpu2", second)
    wanted = plan(ssh, nodes)
    hosts = candidates(wanted, QueuedRuns(runs=()))
    taken = take_hosts(RunFolder(path=ssh / "run"), wanted, hosts)
    assert (taken.started, taken.lasting) == (None, lasting)
    assert taken.reason.startswith("gpu1 is in use by r2 of you; gpu2 ")


def test_locks_that_are_not_enough_are_given_up(ssh: Path) -> None:
    lines = "\\n".join(("ANSWER", "folder /f", "boot b", "port 61000", "END", ""))
    for host in ("gpu1", "gpu2"):
        text = f"{{ echo {host}; head -n 1; }} >>calls\nprintf '{lines}'\n"
        (ssh / f"{host}.sh").write_text(text)
    say(ssh, "gpu2", "busy r1 of me")
    wanted = plan(ssh, 2)
    taken = take_hosts(RunFolder(path=ssh / "run"), wanted, candidates(wanted, QueuedRuns(runs=())))
    assert (taken.started, taken.reason) == (None, "gpu2 is in use by r1 of me")
    took, gave_up = (ssh / "calls").read_text().split("gpu1\n")[1:]
    assert took.startswith("set -- take ")
    assert gave_up == "set -- start /f end\n"
