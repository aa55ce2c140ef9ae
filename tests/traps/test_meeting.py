"""F11 to F16: where the ranks meet, and on which nodes they are."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hpc_train.sites.partition import Rendezvous
from tests.plans.launchers.made import line
from tests.traps.conftest import Execute
from tests.traps.made import LAUNCHERS, argv, directives, planned, script, small

EPHEMERAL = range(32768, 61000)
ODD = "rack[1-2,07]-n[3],login"


def occupied(usual: Rendezvous) -> tuple[int, socket.socket]:
    """Return one of our ports that nobody uses, and a server that uses it from now on."""
    for port in range(usual.port + 17, usual.port + usual.ports - 50):
        try:
            return port, socket.create_server(("127.0.0.1", port))
        except OSError:
            continue
    raise AssertionError("all ports are in use")


def test_f11_the_first_free_port_of_ours(execute: Execute, tmp_path: Path) -> None:
    usual = Rendezvous()
    assert not set(range(usual.port, usual.port + usual.ports)) & set(EPHEMERAL)
    taken, server = occupied(usual)
    with server:
        # The port follows from the job's id and its restarts.
        words = {"SLURM_JOB_ID": f"{taken - usual.port - 2}", "SLURM_RESTART_COUNT": "2"}
        done = execute(small('echo "$MASTER_PORT"'), tmp_path, **words)
    assert done.returncode == 0, done.stderr
    # The log already says that it is another attempt only where there was one.
    found = int((tmp_path / "logs" / "rank-0.out").read_text())
    assert taken < found < taken + 50


def test_f12_f15_scontrol_reads_the_list_of_nodes(execute: Execute, tmp_path: Path) -> None:
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.write_text(f'#!/bin/bash\n[ "$3" = "{ODD}" ] && printf "first\\nsecond\\n"\n')
    site = {"rendezvous": {"suffix": "i"}}
    done = execute(
        small('echo "$MASTER_ADDR"', site=site),
        tmp_path,
        SLURM_JOB_NODELIST=ODD,
        SLURM_LAUNCH_NODE_IPADDR="10.0.0.9",
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "rank-1.out").read_text() == "firsti\n"


def test_f13_torchrun_is_told_which_node_is_the_first() -> None:
    fixed = argv("torchrun")
    assert "--master-addr $MASTER_ADDR --master-port $MASTER_PORT" in fixed
    assert "rdzv" not in fixed
    elastic = planned("torchrun", elastic={"min_nodes": 1, "max_nodes": 2}).launch
    words = line(elastic.agent or ())
    for word in ("is_host=$is_host", "--local-addr $node_address", "$SLURM_JOB_ID.$restarts"):
        assert word in words
    text = script("torchrun", elastic={"min_nodes": 1, "max_nodes": 2})
    assert '[ "$SLURM_NODEID" != 0 ] || is_host=true\n' in text


@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_f14_numbers_expand_in_the_task(execute: Execute, tmp_path: Path, launcher: str) -> None:
    """The stub of torchrun starts one rank, whose number is that of its node."""
    agent = '#!/bin/bash\nwhile [ "$1" != --no-python ]; do shift; done\nshift\n'
    (tmp_path / "bin" / "torchrun").write_text(agent + 'RANK=$PET_NODE_RANK exec "$@"\n')
    (tmp_path / "bin" / "torchrun").chmod(0o755)
    # The stub of srun gives each task a node of its own.
    plan = small('echo "rank $RANK"', launcher)
    if launcher == "torchrun":
        size = {"nodes": 2, "tasks_per_node": 1, "cpus_per_task": 1}
        plan = planned(launcher, size, command=["bash", "-c", 'echo "rank $RANK"'])
    done = execute(plan, tmp_path, SLURM_PROCID="9", SLURM_NODEID="9")
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        assert (tmp_path / "logs" / f"rank-{rank}.out").read_text() == f"rank {rank}\n"


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_f15_no_list_of_nodes_is_read_by_us(launcher: str) -> None:
    lines = [text for text in script(launcher).splitlines() if "NODELIST" in text]
    assert lines
    for text in lines:
        as_text = text.endswith(" hpctrain_hosts=${SLURM_JOB_NODELIST:-}")
        assert as_text or 'scontrol show hostnames "$SLURM_JOB_NODELIST"' in text


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_f16_a_job_is_one_component(launcher: str) -> None:
    lines = directives(script(launcher))
    assert sum(text.startswith("#SBATCH --nodes=") for text in lines) == 1
    assert not any(word in text for text in lines for word in ("hetjob", "packjob", " : "))
