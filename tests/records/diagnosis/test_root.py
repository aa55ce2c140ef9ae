"""Logs of jobs that failed -> what failed first, and what followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.diagnosis import FirstFailure, JobEnd
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
    found = root(judged(tmp_path, "hello\n" + EXIT_1))
    assert (found.id, [one.node for one in found.evidence]) == ("exit_error", ["n1"])


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
    assert diagnosis.first_failure == FirstFailure(
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
    first_failure = FirstFailure(rank=2, host="n2", exit_code=1, said_by="status.json")
    diagnosis = judged(
        tmp_path,
        rank_0=trace("ValueError: a"),
        rank_2=trace("ValueError: b"),
        end=JobEnd(state="FAILED", exit_code=1, first_failure=first_failure),
    )
    assert root(diagnosis).evidence[0].source == "rank-2.out"
    end = JobEnd(state="FAILED", exit_code=1, first_failure=first_failure)
    other = judged(tmp_path, rank_0=GPU_OOM, rank_2=trace("ValueError: b"), end=end)
    assert roles(other)["cuda_oom"] == "consequence", "also in a log that comes first"
    assert judged(tmp_path, box(1), end=end).first_failure == first_failure


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
    assert "rank 2 reported no timeout" in root(diagnosis).title
    assert roles(diagnosis)["slurm_time_limit"] == "consequence"


def test_time_limit_alone_is_a_root(tmp_path: Path) -> None:
    text = "iter 5: loss 3.2\n" + LIMIT + "srun: error: n1: task 0: Terminated\n"
    assert root(judged(tmp_path, text)).id == "slurm_time_limit"


def test_state_of_the_scheduler_without_a_line(tmp_path: Path) -> None:
    end = JobEnd(state="OUT_OF_MEMORY", problem="out of memory")
    assert root(judged(tmp_path, "iter 5: loss 3.2\n", end=end)).id == "slurm_host_oom"
    found = root(judged(tmp_path, HOST_OOM, end=end))
    assert [one.source for one in found.evidence] == ["0.out"], "with a line, the line tells it"
    hang = judged(tmp_path, WATCHDOG.format(rank=0), end=JobEnd(state="TIMEOUT"))
    assert root(hang).id == "nccl_watchdog_timeout"


def test_the_highest_rank_that_is_named_tells_how_many_there_are(tmp_path: Path) -> None:
    text = "".join(WATCHDOG.format(rank=rank) for rank in (0, 1, 2, 3, 4, 7))
    assert root(judged(tmp_path, text)).title.endswith("; ranks 5-6 reported no timeout")


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


@pytest.mark.parametrize("code", [-15, 143])
def test_who_was_told_to_stop_is_a_victim_of_another_node(tmp_path: Path, code: int) -> None:
    text = box(1, code=code, host="n1", time="2025-04-24_10:00:01") + box(5, code=3, host="n2")
    found = judged(tmp_path, text)
    assert found.first_failure is not None
    assert (found.first_failure.rank, found.first_failure.host) == (5, "n2")


def test_an_exit_code_of_the_program_itself(tmp_path: Path) -> None:
    found = root(judged(tmp_path, "hello\n" + box(3, code=3)))
    assert found.title == "Rank 3 ended with exit code 3"
    assert "3 in the program" in found.advice
    assert [one.rank for one in found.evidence] == [3]
    assert found.evidence[0].text == "rank 3 on n1: exitcode 3 (pid: 103)"


def test_the_shells_word_of_a_killed_rank_is_no_second_failure(tmp_path: Path) -> None:
    shell = 'rank: line 6:   575 Killed                  "$@"\n'
    found = judged(tmp_path, shell + box(1, code=137))
    assert root(found).title == "Rank 1 was killed (SIGKILL)"
    assert roles(found)["exit_killed"] == "consequence"


def test_of_the_report_the_first_failure_is_named(tmp_path: Path) -> None:
    found = judged(tmp_path, trace("KeyError: 'x'", "[rank3]: ") + box(3, code=1))
    (report,) = (one for one in found.findings if one.id == "torchrun_child_failed_rank")
    assert report.title.startswith("Rank 3 ")


def test_a_rank_that_ended_without_a_word_is_heard_once_more(tmp_path: Path) -> None:
    found = judged(tmp_path, box(1, code=3), rank_0="I wait\n", rank_1="step 4\nbye\n")
    assert [one.text for one in found.last_lines] == ["step 4", "bye"]
    silent = judged(tmp_path, box(1, code=3), rank_0="I wait\n", rank_1="")
    assert silent.last_lines == ()


def test_where_only_the_scheduler_tells_of_the_time(tmp_path: Path) -> None:
    end = JobEnd(state="TIMEOUT", problem="the time limit of 60 s was reached")
    found = judged(tmp_path, rank_0="step 1\n", end=end)
    assert root(found).title == "The run reached its time limit"
    assert [one.text for one in found.last_lines] == ["step 1"]
