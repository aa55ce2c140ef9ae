"""Each node is asked before the ranks start; a bad one is named and on record."""

import json
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SpecError
from hpc_train.base.values import Duration, Memory, Sourced
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.sites.load import load_site
from hpc_train.sites.partition import Network, Preflight

Execute = Callable[..., subprocess.CompletedProcess[str]]
HOST = socket.gethostname()
STUBS = {
    "scontrol": 'printf "node%s\\n" {0..1}',
    "getent": '[[ "$2" != *"${NO_NAME:-none}"* ]] && echo "10.0.0.1 $2"',
    "ip": 'echo "2: ${*: -1}: <BROADCAST,UP${LINK-,LOWER_UP}> mtu 1500"',
    "df": 'echo "F 1 1 A"; echo "/dev/x 9 1 ${ROOM:-9999999} 1% /x"',
    "date": """offset=0
    [[ $SLURMD_NODENAME != node1 ]] || offset=${LATE:-0}
    /bin/date -d "now $offset sec" "$@"
    """,
}


@pytest.fixture(autouse=True)
def cluster(execute: Execute, tmp_path: Path) -> None:
    """Let two nodes answer, each as the environment says."""
    for name, body in STUBS.items():
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)


def plan(
    command: str = "true", network: Network | None = None, nodes: int = 2, **checks: Any
) -> LaunchPlan:
    resources = {"nodes": nodes, "tasks_per_node": 1, "cpus_per_task": 1, "gpus_per_node": 2}
    data = {"name": "j", "command": [command], "launcher": "srun", "resources": resources}
    site = load_site("slurm-generic")
    value = msgspec.structs.replace(site.value, preflight=Preflight(**checks), network=network)
    return make_plan(decode(data, JobSpec, {}, SpecError), Sourced(value=value, origins={}))


def status(folder: Path) -> Any:
    return json.loads((folder / "status.json").read_text())


ALL: dict[str, Any] = {
    "interfaces": ("ib0",),
    "space": {"/scratch": Memory(64)},
    "clock": Duration(5),
    "timeout": Duration(20),
}
WELL = {"CUDA_VISIBLE_DEVICES": "0,1"}


def test_good_nodes_run_the_job(execute: Execute, tmp_path: Path) -> None:
    done = execute(plan(**ALL), tmp_path, **WELL)
    assert (done.returncode, done.stderr) == (0, "")
    assert status(tmp_path)["bad_nodes"] == ""
    assert (tmp_path / "rank_0_ended").exists()


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0"}, "has 1 visible GPUs, but 2 were requested"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "has 0 visible GPUs, but 2 were requested"),
        ({"LINK": ""}, "interface ib0 is down"),
        ({"ROOM": "2048"}, "/scratch has 2 MiB of free space, 64 are needed"),
        ({"NO_NAME": "node0"}, "does not resolve node0"),
    ],
)
def test_what_all_nodes_lack_ends_the_job_and_blames_no_node(
    execute: Execute, tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    done = execute(plan(**ALL), tmp_path, **{**WELL, **environment})
    assert done.returncode == 1
    for node in ("node0", "node1"):
        assert f"hpctrain: preflight: {node}: {said}\n" in done.stderr
    found = status(tmp_path)
    assert (found["exit_code"], found["bad_nodes"], found["failure"]) == (1, "", None)
    assert not list((tmp_path / "logs").iterdir()), "no rank has started"


def test_a_bad_node_is_on_record(execute: Execute, tmp_path: Path) -> None:
    done = execute(plan(**ALL), tmp_path, **WELL, LATE="-30", NO_NAME="node1")
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first == f"hpctrain: preflight: node1: {HOST} does not resolve its name"
    # A second may pass between two questions.
    pattern = rf"hpctrain: preflight: node1: its clock differs by -(29|30) s from that of {HOST}"
    assert re.fullmatch(pattern, second)
    found = status(tmp_path)
    assert found["bad_nodes"] == "node1"
    assert found["failure"]["host"] == "node1"
    assert found["failure"]["rank"] is None
    log = (tmp_path / "first_failure.log").read_text()
    assert log == done.stderr


def test_a_hung_srun_is_ended(execute: Execute, tmp_path: Path) -> None:
    hung = "[ -e asked ] || { touch asked; trap '' TERM; exec sleep 600; }"
    done = execute(plan(timeout=Duration(1)), tmp_path, **WELL, BEFORE=hung)
    assert "node1: did not answer within 1 s" in done.stderr
    found = status(tmp_path)
    assert found["ended"] - found["started"] < 240


def test_a_program_or_an_image_that_a_node_lacks(execute: Execute, tmp_path: Path) -> None:
    made = plan("no such $(touch pwned)")
    assert made.preflight is not None
    checks = msgspec.structs.replace(made.preflight, image="/images/a b.sif")
    done = execute(msgspec.structs.replace(made, preflight=checks), tmp_path, **WELL)
    assert "node0: has no program no such $(touch pwned)\n" in done.stderr
    assert "node1: cannot read the image /images/a b.sif\n" in done.stderr
    assert not (tmp_path / "pwned").exists()
