"""The state of 1,000 runs takes as many queries as that of one, on each scheduler."""

import os
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

import pytest

from hpc_train.hosts.transport import StartedHost, StartedHosts, write_hosts
from hpc_train.runs.run import JobReport, JobState, RunFolder, Submission
from hpc_train.runs.run_queue import FOLDER, Queue, take
from hpc_train.runs.run_states import executor_of
from hpc_train.sagemaker.training_job import PREFIX
from hpc_train.slurm.job_states import FIELD, RECORD
from tests.servers.sagemaker import REGION, serving
from tests.slurm.fake_slurm import Fake, programs

RUNS = 1000
Runs = dict[RunFolder, Submission]
# Prints a line to a file for each of its calls.
COUNTED = 'echo "${{0##*/}}" >>{log}\n'


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put a program on PATH whose calls are counted."""
    make = programs(tmp_path / "bin", monkeypatch)
    return lambda name, body: make(name, COUNTED.format(log=tmp_path / "calls") + body)


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str, Callable[[int], str]], Runs]:
    """Make the submissions of 1,000 runs of one study."""

    def make(executor: str, native_id: Callable[[int], str]) -> Runs:
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        return {
            RunFolder(path=tmp_path / "home" / f"p-r{number}"): Submission(
                executor=executor, native_id=native_id(number), submitted=now
            )
            for number in range(1, RUNS + 1)
        }

    return make


Made = Callable[[str, Callable[[int], str]], Runs]


def query(executor: str, runs: Runs) -> Mapping[RunFolder, JobReport]:
    found = executor_of(executor).query(runs)
    assert found.keys() == runs.keys()
    return found


def states(found: Mapping[RunFolder, JobReport]) -> set[JobState]:
    return {report.state for report in found.values()}


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().split()


def test_slurm(tmp_path: Path, put: Fake, made: Made) -> None:
    runs = made("slurm", lambda number: f"7_{number}")
    rows = [(one.native_id, "RUNNING", "N/A", "n1", "None", "j", "c") for one in runs.values()]
    (tmp_path / "queue").write_text("".join(FIELD.join(row) + f"{RECORD}\n" for row in rows))
    put("squeue", f"cat {tmp_path}/queue")
    put("sacct", "exit 1")
    assert states(query("slurm", runs)) == {JobState.RUNNING}
    assert calls(tmp_path) == ["squeue"]


def test_pbs(tmp_path: Path, put: Fake, made: Made) -> None:
    runs = made("pbs", lambda number: f"{number}.server")
    texts = (
        f"Job Id: {one.native_id}\n    job_state = R\n    exec_host = n1/0\n\n"
        for one in runs.values()
    )
    (tmp_path / "answer").write_text("".join(texts))
    put("qstat", f"cat {tmp_path}/answer")
    assert states(query("pbs", runs)) == {JobState.RUNNING}
    assert calls(tmp_path) == ["qstat"]


def test_hosts(tmp_path: Path, put: Fake, made: Made) -> None:
    """A host runs one job at a time: two runs on both hosts, and the rest waits for them."""
    runs = made("hosts", lambda _: "q")
    home = tmp_path / "home"
    (home / FOLDER).mkdir(parents=True)
    lock = take(Queue(home=home, queue_id="q").file("lock"))
    assert lock is not None
    for run in list(runs)[:2]:
        run.path.mkdir()
        hosts = (StartedHost(name=name, address="", folder="/f", boot="") for name in ("a", "b"))
        write_hosts(run, StartedHosts(hosts=tuple(hosts)))
    put("ssh", 'exec sh -c "${@: -1}"')
    assert JobState.PENDING in states(query("hosts", runs))
    assert calls(tmp_path) == ["ssh", "ssh"]
    if os.geteuid() == 0:
        one = next(iter(runs))
        os.chown(one.path / "hosts.json", 12345, 12345)
        found = query("hosts", {one: runs[one]})[one]
        assert (found.state, "of another user" in found.reason) == (JobState.UNKNOWN, True)
        assert calls(tmp_path) == ["ssh", "ssh"]


def test_sagemaker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Made) -> None:
    """A page has 100 jobs, the most that AWS returns; jobs that go on are not described."""
    pytest.importorskip("boto3")
    runs = made("sagemaker", lambda number: f"{REGION}/{PREFIX}p-{number:012x}")
    names = [one.native_id.partition("/")[2] for one in runs.values()]
    with serving(tmp_path / "aws", monkeypatch) as served:
        served.add(names)
        served.calls.clear()
        assert states(query("sagemaker", runs)) == {JobState.PENDING}
        assert served.calls == ["ListTrainingJobs"] * (RUNS // 100)
        served.calls.clear()
        last = list(runs)[-1]
        assert query("sagemaker", {last: runs[last]})
        assert served.calls == ["ListTrainingJobs"]
        served.calls.clear()
        # The newest jobs are on the first page, and no other one is asked for.
        assert query("sagemaker", {run: runs[run] for run in list(runs)[-2:]})
        assert served.calls == ["ListTrainingJobs"]


def test_local(put: Fake, tmp_path: Path, made: Made) -> None:
    """Files and a lock tell it, without a program."""
    runs = made("local", lambda _: "q")
    home = tmp_path / "home"
    (home / FOLDER).mkdir(parents=True)
    lock = take(Queue(home=home, queue_id="q").file("lock"))
    assert lock is not None
    for run in runs:
        run.path.mkdir()
    assert states(query("local", runs)) == {JobState.PENDING}
    assert not (tmp_path / "calls").exists()
