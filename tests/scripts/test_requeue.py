"""The end of a start, run by bash: whether the job is queued again, and the line that it leaves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from tests.scripts.job_starts import PROGRAM, Job


def test_a_start_that_saved_is_followed_by_another(started: Callable[..., Job]) -> None:
    job = started(max_restarts=5)
    said, again = job.start(75, step=120)
    assert again
    assert job.asked == "71\n"
    assert "hpctrain: queued again after step 120, restart 1 of at most 5\n" in said
    assert job.start(0, step=200) == ("hpctrain: restart 1\n", False)
    rows = [{key: row[key] for key in ("restart", "exit_code", "step")} for row in job.rows()]
    assert rows == [
        {"restart": 0, "exit_code": 75, "step": 120},
        {"restart": 1, "exit_code": 0, "step": 200},
    ]
    assert [row["requeued"] for row in job.rows()] == [True, False]
    assert all(row["started"] <= row["ended"] for row in job.rows())


def test_other_codes_end_the_job(started: Callable[..., Job]) -> None:
    job = started(requeue_on=[75, 85])
    assert not job.start(1, step=1)[1]
    assert job.start(85, step=2)[1]
    # Asked to stop before it had a handler of USR1.
    assert job.start(138, step=3, FAILED="n1")[1]
    assert job.rows()[-1]["failed"] == ""


def test_the_number_of_restarts_is_limited(started: Callable[..., Job]) -> None:
    job = started(max_restarts=1)
    assert job.start(75, step=1)[1]
    said, again = job.start(75, step=2)
    assert not again
    assert "not queued again after step 2: it was restarted 1 times" in said


def test_the_running_time_of_all_starts_is_limited(started: Callable[..., Job]) -> None:
    job = started(max_run_time="2h")
    assert job.start(75, step=1)[1]
    row = json.dumps({**job.rows()[0], "started": 0.5, "ended": 7199.5})
    lost = json.dumps({**job.rows()[0], "started": 0.5, "ended": None, "exit_code": None})
    (job.folder / "restarts.jsonl").write_text(f"{row}\n{lost}\n")
    job.starts = 2
    assert job.start(75, step=2)[1]
    job.starts = 2
    (job.folder / "restarts.jsonl").write_text(f"{row.replace('7199.5', '7201.5')}\n{lost}\n")
    said, again = job.start(75, step=3)
    assert not again
    assert "not queued again after step 3: its starts ran for 720" in said
    assert " s together (lifecycle.max_run_time)\n" in said


def test_a_job_that_is_being_cancelled_is_not_queued_again(started: Callable[..., Job]) -> None:
    job = started()
    said, again = job.start(75, step=1, STATE="CANCELLED")
    assert not again
    assert "hpctrain: not queued again: Slurm has ended the job\n" in said
    # A program that Slurm interrupts may end with any code.
    assert not job.start(1, STATE="COMPLETING")[1]
    assert [row["by_slurm"] for row in job.rows()] == [True, True]


@pytest.mark.parametrize(("silent", "by_slurm"), [(5, True), (6, False)])
def test_a_controller_that_does_not_answer_is_asked_again(
    started: Callable[..., Job], silent: int, by_slurm: bool
) -> None:
    job = started()
    job.start(75, step=1, SILENT=str(silent), STATE="COMPLETING")
    assert job.rows()[0]["by_slurm"] == by_slurm
    assert (job.folder / "asked").read_text() == "\n" * silent


def test_a_task_of_an_array_is_queued_again_alone(started: Callable[..., Job]) -> None:
    job = started()
    job.start(75, step=1, SLURM_ARRAY_JOB_ID="70", SLURM_ARRAY_TASK_ID="3")
    assert job.asked == "70_3\n"


@pytest.mark.parametrize(("unreached", "again"), [(5, True), (6, False)])
def test_a_controller_that_is_gone_is_asked_for_the_requeue_again(
    started: Callable[..., Job], unreached: int, again: bool
) -> None:
    job = started()
    said, queued = job.start(75, step=1, UNREACHED=str(unreached))
    assert queued == again
    assert ("Slurm did not queue job 71 again" in said) != again
    assert (job.folder / "unreached").read_text() == "\n" * unreached


def test_a_start_that_wrote_no_end_has_a_line_by_the_next(started: Callable[..., Job]) -> None:
    job = started()
    job.start(75, step=10)
    lines = (job.folder / "restarts.jsonl").read_text()
    job.start(75, step=20, SAY='@hpct {"event": "step", "step": 23}')
    (job.folder / "restarts.jsonl").write_text(lines)
    status = json.loads((job.folder / "status.json").read_text())
    job.start(0)
    lost = {"restart": 1, "started": status["started"], "ended": None, "exit_code": None}
    progress = {"step": 20, "reached": 23, "stalled": 0, "nodes": "localhost"}
    progress |= {
        "loaded": None,
        "loaded_saved": None,
        "requeued": False,
        "by_slurm": False,
        "preempted": False,
    }
    assert [row["restart"] for row in job.rows()] == [0, 1, 2]
    # The script looks at the file of the checkpoint, which the test itself wrote.
    progress |= {"saved": job.rows()[1]["saved"], "resumed": None, "failed": ""}
    assert status["started"] <= progress["saved"] <= status["ended"]
    assert job.rows()[1] == {**lost, **progress}


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
    job = Job(tmp_path, render_script(plan("slurm-generic", command=command, **keys)))
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


def test_a_start_that_ends_in_the_grace_time_of_a_preemption_is_followed_by_another(
    started: Callable[..., Job],
) -> None:
    """By the script: Slurm queues only those again that it ends itself."""
    job = started(max_stalled=1, max_restarts=3)
    for _ in range(3):
        said, again = job.start(143, PREEMPTED="2099-01-01T00:00:00")
        assert again
        assert said.endswith(" of at most 3, preempted\n")
    assert not job.start(75, step=1, PREEMPTED="2099-01-01T00:00:00")[1]
    assert [row["preempted"] for row in job.rows()] == [True] * 4


def test_preempted_starts_do_not_count_as_starts_without_progress(
    started: Callable[..., Job],
) -> None:
    job = started(max_stalled=2, max_restarts=9)
    assert job.start(75, step=1)[1]
    for _ in range(3):
        assert job.start(75, PREEMPTED="2099-01-01T00:00:00")[1]
    assert job.start(75)[1]
    assert not job.start(75)[1]
    assert [row["stalled"] for row in job.rows()] == [0, 0, 0, 0, 1, 2]


def test_a_node_whose_clock_is_ahead_is_preempted_too(started: Callable[..., Job]) -> None:
    """Both times are Slurm's: of this machine's clock, the job began long after them."""
    job = started()
    assert job.start(143, PREEMPTED="2026-01-02T03:04:05")[1]


def test_progress_is_judged_from_the_checkpoint_that_was_loaded(
    started: Callable[..., Job],
) -> None:
    """An older one had to be loaded: the starts that go on from it get further, step by step."""
    job = started(max_stalled=2)
    job.start(75, step=200)
    for loaded, step in ((10, 14), (14, 18), (18, None), (None, None)):
        job.start(75, LOADED="" if loaded is None else f"{loaded} 1500.5", step=step)
    rows = [(row["loaded"], row["loaded_saved"], row["step"], row["stalled"]) for row in job.rows()]
    assert rows == [
        (None, None, 200, 0),
        (10, 1500.5, 14, 1),
        (14, 1500.5, 18, 0),
        (18, 1500.5, 18, 1),
        (None, None, 18, 2),
    ]
