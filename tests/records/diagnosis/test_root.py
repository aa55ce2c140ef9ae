"""Logs of jobs that failed -> what failed first, and what followed."""

from __future__ import annotations

from pathlib import Path

from hpc_train.model.diagnosis import Culprit, JobEnd
from tests.records.diagnosis.logs import (
    EXIT_1,
    GPU_OOM,
    HOST_OOM,
    LIMIT,
    WATCHDOG,
    box,
    judged,
    roles,
    root,
    trace,
)


def test_exit_code_of_a_check_before_is_no_root(tmp_path: Path) -> None:
    says = (
        'The application appears to have been direct launched using "srun",\n'
        "but OMPI was not built with SLURM's PMI support and therefore cannot\nexecute.\n"
    )
    diagnosis = judged(tmp_path, EXIT_1 + "usage: check\n" + EXIT_1 + says)
    assert root(diagnosis).id == "openmpi_direct_launch_without_pmi"
    assert roles(diagnosis)["exit_error"] == "consequence"


def test_exit_code_alone_is_a_root(tmp_path: Path) -> None:
    assert root(judged(tmp_path, "hello\n" + EXIT_1)).id == "exit_error"


def test_host_memory_and_what_its_end_makes_others_say(tmp_path: Path) -> None:
    worker = "RuntimeError: DataLoader worker (pid 5) is killed by signal: Killed."
    killed = "srun: error: n1: task 3: Exited with exit code 137\n"
    diagnosis = judged(tmp_path, trace(worker, "[rank2]: ") + killed + HOST_OOM + EXIT_1)
    assert root(diagnosis).id == "slurm_host_oom"
    assert "cuda_oom" not in roles(diagnosis)


def test_memory_of_the_gpu_is_not_that_of_the_host(tmp_path: Path) -> None:
    diagnosis = judged(tmp_path, trace(GPU_OOM, "[rank3]: ") + box(3) + EXIT_1)
    found = root(diagnosis)
    assert (found.id, found.evidence[0].rank) == ("cuda_oom", 3)
    assert "python_exception" not in roles(diagnosis)
    assert "slurm_host_oom" not in roles(diagnosis)


def test_first_rank_of_torchrun_wins_over_the_first_line(tmp_path: Path) -> None:
    text = trace("ValueError: late", "[rank0]: ") + trace("KeyError: 'first'", "[rank3]: ")
    assert root(judged(tmp_path, text)).evidence[0].rank == 0
    diagnosis = judged(tmp_path, text + box(3))
    assert root(diagnosis).evidence[0].rank == 3
    assert "first" in root(diagnosis).title
    assert diagnosis.first_failure == Culprit(
        rank=3, host="n1", exit_code=1, time="2025-04-24T10:00:07", said_by="torchrun"
    )


def test_victims_of_other_agents_are_not_first(tmp_path: Path) -> None:
    text = box(1, code=-15, host="n1", time="2025-04-24_10:00:01")
    text += box(5, code=1, host="n2", time="2025-04-24_10:00:03")
    text += box(9, code=1, host="n3", time="2025-04-24_10:00:04")
    first = judged(tmp_path, text).first_failure
    assert first is not None
    assert (first.rank, first.host) == (5, "n2")


def test_first_rank_of_the_run_wins(tmp_path: Path) -> None:
    culprit = Culprit(rank=2, host="n2", exit_code=1, said_by="status.json")
    diagnosis = judged(
        tmp_path,
        rank_0=trace("ValueError: a"),
        rank_2=trace("ValueError: b"),
        end=JobEnd(state="FAILED", exit_code=1, first_failure=culprit),
    )
    assert root(diagnosis).evidence[0].source == "rank-2.out"


def test_echoes_of_a_dead_rank_are_no_root(tmp_path: Path) -> None:
    echo = "torch.distributed.DistBackendError: NCCL error: remote process exited"
    diagnosis = judged(tmp_path, trace(echo, "[rank0]: ") + trace("ValueError: b", "[rank1]: "))
    assert root(diagnosis).evidence[0].rank == 1


def test_times_decide_before_lines(tmp_path: Path) -> None:
    node = LIMIT.replace("TIME LIMIT", "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS")
    later = LIMIT.replace("TIME LIMIT", "PREEMPTION").replace("11:46:38", "12:46:38")
    assert root(judged(tmp_path, later, node)).id == "slurm_node_failure"
    earlier = LIMIT.replace("TIME LIMIT", "PREEMPTION").replace("11:46:38", "10:46:38")
    assert root(judged(tmp_path, node, earlier)).id == "slurm_preempted"


def test_line_without_a_time_has_that_of_the_lines_above(tmp_path: Path) -> None:
    late = LIMIT.replace("TIME LIMIT", "JOB REQUEUE")
    early = late.replace("11:46:38", "10:46:38")
    texts = late + trace("ValueError: a"), early + trace("ValueError: b")
    assert root(judged(tmp_path, *texts)).evidence[0].source == "1.out"


def test_time_limit_after_a_hang_is_its_consequence(tmp_path: Path) -> None:
    text = "".join(WATCHDOG.format(rank=rank) for rank in (0, 1, 3))
    diagnosis = judged(tmp_path, text + LIMIT, end=JobEnd(ranks=4))
    assert root(diagnosis).id == "nccl_watchdog_timeout"
    assert "rank 2 never said that it waited" in root(diagnosis).title
    assert roles(diagnosis)["slurm_time_limit"] == "consequence"


def test_time_limit_alone_is_a_root(tmp_path: Path) -> None:
    text = "iter 5: loss 3.2\n" + LIMIT + "srun: error: n1: task 0: Terminated\n"
    assert root(judged(tmp_path, text)).id == "slurm_time_limit"


def test_state_of_the_scheduler_without_a_line(tmp_path: Path) -> None:
    end = JobEnd(state="OUT_OF_MEMORY", problem="out of memory")
    assert root(judged(tmp_path, "iter 5: loss 3.2\n", end=end)).id == "slurm_host_oom"
    hang = judged(tmp_path, WATCHDOG.format(rank=0), end=JobEnd(state="TIMEOUT"))
    assert root(hang).id == "nccl_watchdog_timeout"


def test_many_copies_are_one_finding(tmp_path: Path) -> None:
    text = "".join(trace("ValueError: x", f"[rank{rank}]: ") for rank in range(40))
    (found,) = judged(tmp_path, text).findings
    assert (found.count, len(found.evidence)) == (40, 5)


def test_same_logs_same_diagnosis(tmp_path: Path) -> None:
    texts = trace("ValueError: x", "[rank1]: ") + box(1), EXIT_1 + LIMIT
    assert judged(tmp_path, *texts) == judged(tmp_path, *texts)


def test_the_exception_of_a_worker_goes_before_that_of_its_parent(tmp_path: Path) -> None:
    loader = "KeyError: Caught KeyError in DataLoader worker process 3."
    text = trace(loader) + "Original " + trace("KeyError: 'img'")
    assert root(judged(tmp_path, text)).title == "KeyError: 'img'"
    spawn = "torch.multiprocessing.spawn.ProcessRaisedException: "
    text = trace(spawn) + "-- Process 1 terminated with the following error:\n"
    assert root(judged(tmp_path, text + trace("KeyError: 'lr'"))).title == "KeyError: 'lr'"
