"""The nodes whose ranks failed first in the starts of a job; the script is run by bash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from tests.scripts.job_starts import PROGRAM, Job

Plans = Callable[..., LaunchPlan]


def test_the_node_that_failed_first_is_recorded(started: Callable[..., Job]) -> None:
    job = started(requeue_on=[1, 75])
    for step, node in enumerate(("n2.cluster", "n1", "n2.cluster")):
        assert job.start(1, step=step + 5, FAILED=node)[1]
    assert [row["failed"] for row in job.rows()] == ["n2", "n1", "n2"]


def test_ranks_that_saved_or_were_ended_by_slurm_blame_no_node(started: Callable[..., Job]) -> None:
    job = started(requeue_on=[1, 75])
    for step in (1, 2):
        job.start(75, step=step, FAILED="n1")
    job.start(1, step=3, FAILED="n1", STATE="COMPLETING")
    job.start(1, step=4, FAILED="n1", PREEMPTED="2099-01-01T00:00:00")
    assert [row["failed"] for row in job.rows()] == ["", "", "", ""]


# What a rank printed last that lost another one: gloo of torch 2.13, its peer was killed here; the
# others from NVIDIA/nccl issues 2076, 1514 and 1232, tatsu-lab/stanford_alpaca issue 207.
LOST_PEER = (
    "[rank0]: RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] "
    "Connection closed by peer [127.0.0.1]:29605. This is typically caused by a remote worker "
    "crashing. Check the logs of the remote worker before reporting an error.",
    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
    "NCCLUtils.hpp:268, remote process exited or there was a network error, NCCL version 2.21.5\n"
    "socketProgressOpt: Call to recv from 172.16.0.2<33759> failed : Connection reset by peer",
    "ncclInternalError: Internal check failed.\nLast error:\n"
    "Net : Connection closed by remote peer user<50260>",
    "node0:13571:13571 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote "
    "peer node2<42830>",
    "NET/IB : Got completion from peer 11.214.147.122<39138> with error 12, opcode 0, len 0",
)
OWN = (
    "[rank0]: RuntimeError: CUDA error: an illegal memory access was encountered",
    "[rank0]: ValueError: the batch is empty",
    "[rank0]: AssertionError",
    "ZeroDivisionError: division by zero",
)
# With more nodes than one: srun of the tests starts the ranks of one.
MORE = {"nodes": 2, "tasks_per_node": 1, "cpus_per_task": 1}


@pytest.fixture
def two_nodes(plan: Plans, tmp_path: Path) -> Job:
    command = ["bash", "-c", PROGRAM]
    keys = {"launcher": "srun", "lifecycle": {"requeue_on": [1, 75]}, "resources": MORE}
    job = Job(tmp_path, render_script(plan("slurm-generic", command=command, **keys)).text)
    (tmp_path / "bin" / "srun").write_text(SRUN)
    (tmp_path / "bin" / "srun").chmod(0o755)
    return job


SRUN = """\
#!/bin/bash
while [ "$1" != bash ]; do shift; done
export SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_NODEID=0
exec "$@"
"""


@pytest.mark.parametrize("words", LOST_PEER)
def test_a_rank_that_lost_another_one_is_no_fault_of_its_node(two_nodes: Job, words: str) -> None:
    for step in (1, 2):
        two_nodes.start(1, step=step, FAILED="n1", SAY=words, NODES="")
    assert [row["failed"] for row in two_nodes.rows()] == ["", ""]
    assert failure(two_nodes)["lost_peer"] is True


def test_the_node_that_slurm_has_lost_is_to_blame(two_nodes: Job) -> None:
    nodes = "NodeName=n1 Arch=x86_64 State=ALLOCATED X=\nNodeName=n2 Arch=x86_64 State=DOWN* X=\n"
    for step in (1, 2):
        two_nodes.start(1, step=step, FAILED="n1", SAY=LOST_PEER[0], NODES=nodes)
    assert [row["failed"] for row in two_nodes.rows()] == ["n2", "n2"]


@pytest.mark.parametrize("words", OWN)
def test_an_error_of_its_own_counts_beside_the_lost_connection(two_nodes: Job, words: str) -> None:
    for step in (1, 2):
        two_nodes.start(1, step=step, FAILED="n1", SAY=f"{words}\n{LOST_PEER[0]}", NODES="")
    assert [row["failed"] for row in two_nodes.rows()] == ["n1", "n1"]
    assert failure(two_nodes)["lost_peer"] is False


def failure(job: Job) -> Any:
    return json.loads((job.folder / "status.json").read_text())["failure"]
