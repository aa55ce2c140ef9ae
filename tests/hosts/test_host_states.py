"""What the hosts of a run say -> one state, one reason, one exit code."""

import msgspec
import pytest

from hpc_train.hosts.run_on_hosts import HostState, merged, report_of, states_of
from hpc_train.hosts.transport import Answer, StartedHost
from hpc_train.runs.run import Failure, JobState, JobStatus

HOST = StartedHost(name="gpu1", address="10.0.0.11", folder="/f", boot="b1")
RUNNING = HostState(name="gpu1", alive=True)
DONE = HostState(name="gpu1", code=0)
FAILED = HostState(name="gpu2", code=3)
SILENT = HostState(name="gpu2", silent="Connection timed out")
RESTARTED = HostState(name="gpu2", restarted=True)
LATE = HostState(name="gpu2", code=124, timed_out=True)
KILLED = HostState(name="gpu2")


@pytest.mark.parametrize(
    ("states", "state", "reason"),
    [
        ([RUNNING, RUNNING], JobState.RUNNING, ""),
        ([DONE, RUNNING], JobState.RUNNING, ""),
        ([DONE, DONE], JobState.COMPLETED, ""),
        ([DONE, FAILED], JobState.FAILED, ""),
        ([FAILED, RUNNING], JobState.RUNNING, ""),
        ([RUNNING, SILENT], JobState.UNKNOWN, "gpu2 does not answer: Connection timed out"),
        ([DONE, SILENT], JobState.UNKNOWN, "gpu2 does not answer: Connection timed out"),
        ([RUNNING, RESTARTED], JobState.RUNNING, "gpu2 was restarted during the run"),
        ([DONE, RESTARTED], JobState.NODE_FAIL, "gpu2 was restarted during the run"),
        ([DONE, LATE], JobState.TIMEOUT, "the time limit was reached"),
        (
            [DONE, KILLED],
            JobState.FAILED,
            "all its processes on gpu2 were killed, or the disk there is full",
        ),
    ],
)
def test_one_state_of_several_hosts(states: list[HostState], state: JobState, reason: str) -> None:
    report = report_of(states)
    assert (report.state, report.reason) == (state, reason)
    assert report.nodes == ",".join(one.name for one in states)


def test_a_silent_host_is_never_lost() -> None:
    assert report_of([SILENT]).state is JobState.UNKNOWN
    assert not SILENT.ended
    assert not SILENT.failed


def status(code: int, ended: float, failure: Failure | None = None) -> JobStatus:
    return JobStatus(started=100.0 + code, ended=ended, exit_code=code, failure=failure)


def test_the_first_failure_is_that_of_the_run_not_of_those_it_ended() -> None:
    first = Failure(rank=2, host="gpu2", exit_code=3, time=200.0)
    later = Failure(rank=0, host="gpu1", exit_code=1, time=202.0)
    states = [
        HostState(name="gpu1", code=1, status=status(1, 203.0, later)),
        HostState(name="gpu2", code=3, status=status(3, 201.0, first)),
    ]
    found = merged(states, 300.0)
    assert (found.failure, found.exit_code) == (first, 3)
    assert (found.started, found.ended, found.nodes) == (101.0, 203.0, "gpu1,gpu2")


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ((0, 0), 0), ((143, 5), 5), ((143, 143), 143), ((0, None), 1), ((137, 124), 137),
        ((137, 5), 5), ((124, 5), 5),
    ],
)  # fmt: skip
def test_the_exit_code_of_a_run(codes: tuple[int | None, ...], code: int) -> None:
    states = [HostState(name=f"gpu{n}", code=one) for n, one in enumerate(codes)]
    assert merged(states, 300.0).exit_code == code


def test_an_answer_about_several_runs() -> None:
    line = msgspec.json.encode(JobStatus(started=1.0)).decode()
    text = f"run /f\nboot b1\nalive\nstatus {line}\nrun /g\nboot b2\nend 124 1"
    lines = tuple(
        (word, rest) for word, _, rest in (one.partition(" ") for one in text.split("\n"))
    )
    first, second = states_of([HOST, HOST], Answer(lines=lines))
    assert first == HostState(name="gpu1", alive=True, status=JobStatus(started=1.0))
    # The run had ended before the host was restarted.
    assert second == HostState(name="gpu1", code=124, timed_out=True)


def test_a_restart_shows_in_the_id_of_the_boot() -> None:
    (state,) = states_of([HOST], Answer(lines=(("run", "/f"), ("boot", "b2"))))
    assert state.restarted
    assert state.ended


def test_without_an_answer_all_runs_of_a_host_are_silent() -> None:
    states = states_of([HOST, HOST], Answer(problem="Connection refused"))
    assert [state.silent for state in states] == ["Connection refused"] * 2
