"""The nodes that the next start of a job leaves out; the script is run by bash."""

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


def updates(job: Job) -> list[str]:
    file = job.folder / "updated"
    return file.read_text().splitlines() if file.exists() else []


def test_a_node_that_is_the_first_to_fail_twice_is_left_out(started: Callable[..., Job]) -> None:
    job = started(requeue_on=[1, 75])
    said, _ = job.start(1, step=5, FAILED="n2.cluster")
    assert "without" not in said
    assert updates(job) == []
    job.start(1, step=6, FAILED="n1")
    said, again = job.start(1, step=7, FAILED="n2.cluster", EXCLUDED="n[7-8]")
    assert again
    assert "queued again after step 7, restart 3 of at most 10, without n2\n" in said
    assert updates(job) == ["jobid=71 excnodelist=n[7-8],n2"]
    assert [row["failed"] for row in job.rows()] == ["n2", "n1", "n2"]
    assert [row["left_out"] for row in job.rows()] == ["", "", "n2"]


def test_a_node_is_left_out_only_where_the_job_is_queued_again(started: Callable[..., Job]) -> None:
    job = started(requeue_on=[75])
    assert not job.start(1, step=1, FAILED="n2")[1]
    assert not job.start(1, step=2, FAILED="n2")[1]
    assert [row["left_out"] for row in job.rows()] == ["", ""]
    assert updates(job) == []


def test_ranks_that_saved_or_were_ended_by_slurm_blame_no_node(started: Callable[..., Job]) -> None:
    job = started(requeue_on=[1, 75])
    for step in (1, 2):
        job.start(75, step=step, FAILED="n1")
    job.start(1, step=3, FAILED="n1", STATE="COMPLETING")
    job.start(1, step=4, FAILED="n1", PREEMPTED="2099-01-01T00:00:00")
    assert [row["failed"] for row in job.rows()] == ["", "", "", ""]
    assert updates(job) == []


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
    assert updates(two_nodes) == []
    assert failure(two_nodes)["lost_peer"] is True


def test_the_node_that_slurm_has_lost_is_to_blame(two_nodes: Job) -> None:
    nodes = "NodeName=n1 Arch=x86_64 State=ALLOCATED X=\nNodeName=n2 Arch=x86_64 State=DOWN* X=\n"
    for step in (1, 2):
        two_nodes.start(1, step=step, FAILED="n1", SAY=LOST_PEER[0], NODES=nodes)
    assert [row["failed"] for row in two_nodes.rows()] == ["n2", "n2"]
    assert updates(two_nodes) == ["jobid=71 excnodelist=n2"]


@pytest.mark.parametrize("words", OWN)
def test_an_error_of_its_own_counts_beside_the_lost_connection(two_nodes: Job, words: str) -> None:
    for step in (1, 2):
        two_nodes.start(1, step=step, FAILED="n1", SAY=f"{words}\n{LOST_PEER[0]}", NODES="")
    assert [row["failed"] for row in two_nodes.rows()] == ["n1", "n1"]
    assert failure(two_nodes)["lost_peer"] is False


def failure(job: Job) -> Any:
    return json.loads((job.folder / "status.json").read_text())["failure"]


# Slurm 22.05 on the lab: too few nodes that are up, or with the features or GPUs; a node that the
# job names.
TOO_FEW = "allocation failure: Requested node configuration is not available"
NAMED = "allocation failure: Invalid node name specified"
OTHER = "allocation failure: Job violates accounting/QOS policy (job submit limit, user's size)"


@pytest.mark.parametrize(
    ("answers", "kept"),
    [
        pytest.param({}, "", id="others-fit"),
        pytest.param({"ANSWER": TOO_FEW}, "n2", id="too-few"),
        pytest.param({"ANSWER": NAMED}, "n2", id="named"),
        pytest.param({"ANSWER": OTHER}, "", id="another-refusal"),
        pytest.param({"ANSWER": TOO_FEW, "FITS": "--exclude=n[7-8],n2"}, "n2", id="excluded-not"),
        pytest.param(
            {"ANSWER": TOO_FEW, "FITS": "--exclude=n[7-8],n2 ", "EXCLUDED": "n[7-8]"},
            "",
            id="excluded",
        ),
        pytest.param(
            {"ANSWER": TOO_FEW, "FITS": "--constraint=a&c", "WANTED": "a&[b|c]"},
            "",
            id="one-alternative",
        ),
        pytest.param(
            {"ANSWER": TOO_FEW, "FITS": "--constraint=a&d", "WANTED": "a&[b|c]"},
            "n2",
            id="no-alternative",
        ),
        pytest.param({"ANSWER": TOO_FEW, "WANTED": "[a*1&b*1]"}, "n2", id="counts"),
        pytest.param(
            {"ANSWER": TOO_FEW, "FITS": "--nodes=2 --constraint=a ", "WANTED": "[a*2&b]"},
            "n2",
            id="counts-of-one-feature",
        ),
    ],
)
def test_a_node_without_which_the_job_could_not_start_is_kept(
    two_nodes: Job, answers: dict[str, str], kept: str
) -> None:
    two_nodes.start(1, step=1, FAILED="n2")
    said, again = two_nodes.start(1, step=2, FAILED="n2", **answers)
    assert again
    assert ("with n2, without which it could not start" in said) == bool(kept)
    assert bool(updates(two_nodes)) != bool(kept)
    row = two_nodes.rows()[-1]
    assert (row["kept"], row["left_out"]) == (kept, "" if kept else "n2")


def test_nodes_of_each_feature_are_asked_for(two_nodes: Job) -> None:
    two_nodes.start(1, step=1, FAILED="n2")
    two_nodes.start(1, step=2, FAILED="n2", WANTED="[a*2&b]")
    asked = (two_nodes.folder / "tested").read_text().splitlines()
    assert [words.split()[2:-1] for words in asked] == [
        ["--nodes=2", "--constraint=a"],
        ["--nodes=1", "--constraint=b"],
        [],
    ]
    assert updates(two_nodes) == ["jobid=71 excnodelist=n2"]
