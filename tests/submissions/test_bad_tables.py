"""Bad tables of every kind: refused with place, reason and next command, or read with a caveat."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpc_train.base.errors import HpcTrainError
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report import ReportOptions
from hpc_train.reports.report_inputs import ReportInputs, report_inputs
from hpc_train.runs.run import JobState, JobStatus, Run
from hpc_train.runs.run_states import runs_below
from hpc_train.scaling.record_arrays import records_in
from hpc_train.submissions.last_measurement import LastMeasurement, RunProgress, time_left
from hpc_train.submissions.submit import submit
from tests.slurm.fake_slurm import FakeSlurm
from tests.submissions.on_slurm import RESULTS, job

HEADER = ("nodes", "gpus_per_node", "global_batch_size", "step_time")
Rows = Sequence[Sequence[Any]]


def as_csv(path: Path, header: Sequence[str], rows: Rows) -> None:
    lines = (";".join(map(str, row)) for row in (header, *rows))
    path.write_text("".join(f"{line}\n" for line in lines))


def read(*paths: Path) -> ReportInputs:
    return report_inputs([str(path) for path in paths], Search(root=paths[0].parent / "none"))


def refusal(*paths: Path) -> HpcTrainError:
    with pytest.raises(HpcTrainError) as refused:
        read(*paths)
    return refused.value


VALUES: list[tuple[Any, str]] = [
    (-0.5, "-0.5 must be above 0; leave the cell empty"),
    (0.0, "must be above 0"),
    (1e308, "1e+308 is too large for a measurement; at most 1e+100"),
    ("0.5 GB", "'0.5 GB' is not a number with the unit of its column, s"),
    ("1.2.3", "'1.2.3' is not a number"),
]


@pytest.mark.parametrize(("value", "said"), VALUES)
def test_a_bad_value_is_refused_with_its_place(tmp_path: Path, value: object, said: str) -> None:
    path = tmp_path / "t.csv"
    first: object = "0.5" if isinstance(value, str) else 0.5
    as_csv(path, HEADER, [(1, 4, 256, first), (2, 4, 256, value)])
    error = refusal(path)
    assert error.message.startswith(f"{path}:3: step_time: "), error.message
    assert said in error.message
    assert error.hint == "correct this cell"


def caveats(*paths: Path) -> str:
    return "\n".join(build_report(read(*paths), ReportOptions()).summary)


def test_two_tables_in_other_units(tmp_path: Path) -> None:
    rows = [(1, 4, 256, 0.501), (2, 4, 256, 0.271)]
    as_csv(tmp_path / "s.csv", HEADER, [(1, 4, 256, 0.5), (2, 4, 256, 0.27)])
    milliseconds = [(*row[:3], row[3] * 1000) for row in rows]
    as_csv(tmp_path / "ms.csv", HEADER, milliseconds)
    as_csv(tmp_path / "stated.csv", (*HEADER[:3], "step_time [ms]"), milliseconds)
    assert "the unit of a value may be wrong" in caveats(tmp_path / "s.csv", tmp_path / "ms.csv")
    both = (tmp_path / "s.csv", tmp_path / "stated.csv")
    assert "unit" not in caveats(*both)
    values = [record.value for record in records_in(read(*both).records) if record.unit == "s"]
    assert values == pytest.approx([0.5, 0.27, 0.501, 0.271])


LEFT = "1 h 50 min to the time limit"
EVENT = '@hpct {"step": %d, "step_time": 0.25, "loss": %s}\n'


@pytest.fixture
def run(slurm: FakeSlurm) -> Iterator[Run]:
    done = submit(job("time=2h"), RESULTS, [])
    (found,) = runs_below(done.home)
    status = JobStatus(started=time.time() - 600)
    yield msgspec.structs.replace(found, state=JobState.RUNNING, status=status)


def log(run: Run, text: str, name: str = "rank-0.out") -> None:
    with Path(run.folder.logs / name).open("a") as file:
        file.write(text)


def test_only_new_lines_are_read_and_the_last_counts(run: Run) -> None:
    last = LastMeasurement(run)
    assert last.text() == ""
    log(run, EVENT % (1, "2.5") + EVENT % (2, "1.5") + EVENT[:20])
    assert last.text() == "step 2, 0.25 s a step, loss 1.5"
    (run.folder.logs / "rank-0.out").write_text("x" * 200)
    assert last.text() == "step 2, 0.25 s a step, loss 1.5"


def test_the_time_to_the_limit(run: Run) -> None:
    assert time_left(run) == "1 h 50 min to the time limit"
    assert time_left(msgspec.structs.replace(run, status=None)) == ""


def test_what_a_running_run_measured_is_read_at_intervals(run: Run) -> None:
    log(run, EVENT % (1, "2"))
    name, progress = run.folder.run_id, RunProgress(3600.0)
    text = f"step 1, 0.25 s a step, loss 2, {LEFT}"
    assert progress.texts([run]) == {name: text}
    log(run, EVENT % (2, "1"))
    assert progress.texts([run]) == {name: text}
    ended = msgspec.structs.replace(run, state=JobState.COMPLETED)
    assert progress.texts([ended]) == RunProgress(0.0).texts([ended]) == {}
