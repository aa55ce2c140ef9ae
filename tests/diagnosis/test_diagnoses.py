"""Logs of jobs -> how they ended, what failed first, and what followed from it."""

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from hpc_train.base.errors import LogParseError
from hpc_train.diagnosis.diagnose import diagnose_logs
from hpc_train.diagnosis.diagnosis import Diagnosis, JobEnd, LogFinding, diagnosis_lines
from hpc_train.diagnosis.scan_logs import look_again

CASES = yaml.safe_load((Path(__file__).parent / "diagnoses.yaml").read_bytes())


LIMIT = (
    "slurmstepd: error: *** STEP 82.1 ON n1 CANCELLED AT 2025-04-24T11:46:38 DUE TO TIME LIMIT "
    "***\n"
)
STEPS = "".join(f"step {number} | loss 2.5 | 1.2 s/it\n" for number in range(1000))


def trace(error: str, at: str = "") -> str:
    return (
        f"{at}Traceback (most recent call last):\n"
        f'{at}  File "/work/train.py", line 41, in <module>\n{at}    main()\n'
        f'{at}  File "/work/model.py", line 7, in main\n{at}    raise Problem\n{at}{error}\n'
    )


def judged(folder: Path, logs: str | dict[str, str], end: JobEnd | None = None) -> Diagnosis:
    """Diagnose a log, or those of the files that are named."""
    texts = {"0.out": logs} if isinstance(logs, str) else logs
    for name, text in texts.items():
        (folder / name).write_text(text)
    diagnosis, unreadable = diagnose_logs(
        [folder / name for name in texts], [*texts], end or JobEnd()
    )
    assert not unreadable
    return diagnosis


def root(diagnosis: Diagnosis) -> LogFinding:
    assert diagnosis.outcome == "failed"
    assert diagnosis.root is not None
    assert diagnosis.findings[0] is diagnosis.root
    return diagnosis.root


def stated(value: msgspec.Struct) -> dict[str, Any]:
    fields = msgspec.to_builtins(value).items()
    return {key: field for key, field in fields if field not in (None, "")}


def test_what_a_user_cancelled_failed_only_if_something_failed_before(tmp_path: Path) -> None:
    log = "slurmstepd: error: *** JOB 82 ON n1 CANCELLED AT 2025-04-24T11:46:38 ***\n"
    end = JobEnd(state="CANCELLED", exit_code=143, problem="cancelled by the user")
    found = judged(tmp_path, STEPS + log, end)
    assert (found.outcome, found.why, found.root) == ("unknown", "cancelled by the user", None)
    assert next(diagnosis_lines(found, benign=False)).startswith("CANCELLED  cancelled by the user")
    error = trace("torch.AcceleratorError: CUDA error: an illegal memory access was encountered")
    assert root(judged(tmp_path, STEPS + error + log, end)).group == "cuda"


def told(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return what is said, except advice and causes, which belong to the signatures."""
    said = {
        "outcome": diagnosis.outcome,
        "why": diagnosis.why,
        "line": diagnosis.line if diagnosis.line != 1 else None,
        "findings": [
            f"{one.role}, {one.severity}, {one.count}x {one.id}: {one.title}"
            for one in diagnosis.findings
        ],
        "root": [stated(one) for one in (diagnosis.root.evidence if diagnosis.root else ())],
        "first_failure": diagnosis.first_failure and stated(diagnosis.first_failure),
        "last_lines": [f"{one.source}:{one.line} {one.text}" for one in diagnosis.last_lines],
        "earlier": [stated(one) for one in diagnosis.earlier],
    }
    return {key: value for key, value in said.items() if value}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])
def test_what_is_said_of_a_job(tmp_path: Path, case: dict[str, Any]) -> None:
    end = msgspec.convert(case.get("end", {}), JobEnd)
    found = judged(tmp_path, case["logs"], end)
    assert told(found) == case["says"]
    if found.outcome == "failed":
        assert case.get("advice", "") in root(found).advice
        assert case.get("message", "") in root(found).message


def test_the_work_of_the_next_attempt_survives_nothing_of_the_one_before(tmp_path: Path) -> None:
    nohup = "nohup: ignoring input\n"
    log = nohup + trace("ValueError: x") + nohup + STEPS + "Training completed\n"
    found = judged(tmp_path, log)
    assert (found.earlier[0].outcome, found.outcome) == ("failed", "success")
    assert found.earlier[0].id == "python_exception"


def test_work_that_went_on_survived_the_error(tmp_path: Path) -> None:
    found = judged(tmp_path, trace("ValueError: caught") + STEPS)
    assert (found.outcome, found.root) == ("unknown", None)
    assert [(one.id, one.severity) for one in found.findings] == [("python_exception", "info")]
    assert "continued after the errors" in found.why
    late = judged(tmp_path, trace("ValueError: caught") + STEPS + trace("KeyError: 'a'"))
    assert root(late).title == "KeyError: 'a'"


def test_failed_run_without_any_log(tmp_path: Path) -> None:
    diagnosis, _ = diagnose_logs([], [], JobEnd(state="FAILED", problem="nothing was written"))
    assert root(diagnosis).id == "unknown_failure"


def test_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.out").write_text(LIMIT)
    (tmp_path / "b.out.gz").write_bytes(gzip.compress(LIMIT.encode())[:20])
    files = [tmp_path / "a.out", tmp_path / "b.out.gz"]
    diagnosis, unreadable = diagnose_logs(files, ["a.out", "b.out.gz"], JobEnd())
    assert root(diagnosis).id == "slurm_time_limit"
    assert len(unreadable) == 1
    assert "b.out.gz" in unreadable[0]
    with pytest.raises(LogParseError, match=r"b\.out\.gz"):
        diagnose_logs(files[1:], ["b.out.gz"], JobEnd())


def test_document_that_quotes_logs_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("It said:\n" + LIMIT)
    diagnosis, _ = diagnose_logs([tmp_path / "notes.md"], ["notes.md"], JobEnd())
    assert diagnosis.outcome == "unknown"
    assert {finding.severity for finding in diagnosis.findings} == {"info"}


def test_many_copies_are_one_finding(tmp_path: Path) -> None:
    text = "".join(trace("ValueError: x", f"[rank{rank}]: ") for rank in range(40))
    (found,) = judged(tmp_path, text).findings
    assert (found.count, len(found.evidence)) == (40, 5)


@pytest.mark.parametrize(
    ("before", "after", "amount"),
    [
        ([], ["loss 2.5", "saving", "loss 2.4", "loss 2.3"], 9),
        ([], ["loss 2.6", "loss 2.5", "saving", "loss 2.4", "loss 2.3"], 18),
        # A line or two of work may be what a buffer held.
        (["loss 2.6", "loss 2.5"], ["loss 2.4"], None),
        (["loss 2.6"], ["loss 2.5", "loss 2.4"], None),
        ([], ["loss 2.5", "loss 2.4"], None),
    ],
)
def test_three_lines_of_work_are_needed_and_the_first_of_them_counts(
    tmp_path: Path, before: list[str], after: list[str], amount: int | None
) -> None:
    path, line = tmp_path / "job.out", len(before) + 1
    path.write_text("\n".join([*before, "Error: x", *after]) + "\n")
    assert look_again(path, [line]).work_after == ({} if amount is None else {line: amount})
