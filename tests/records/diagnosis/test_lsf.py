"""Jobs of LSF, which appends its report to the output of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.records.diagnosis.logs import EXIT_1, judged, root, trace

REPORT = (
    "\n------------------------------------------------------------\n"
    "Sender: LSF System <lsfadmin@n1>\n"
    "Subject: Job 4711: <train> in cluster <c> Exited\n\n"
    "{said}\n\nResource usage summary:\n\n    CPU time :   13.55 sec.\n\n"
    "The output (if any) is above this job summary.\n\n"
)
EXIT = REPORT.format(said="Exited with exit code 1.")
DONE = REPORT.format(said="Successfully completed.")


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "lsf_memory_limit"),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "lsf_time_limit"),
    ],
)
def test_a_limit_is_the_root(tmp_path: Path, said: str, name: str) -> None:
    report = REPORT.format(said=f"{said}\nExited with exit code 137.")
    assert root(judged(tmp_path, "step 1 | loss 2.5\n" + report)).id == name


def test_a_job_that_its_owner_killed_did_not_fail(tmp_path: Path) -> None:
    said = "TERM_OWNER: job killed by owner.\nExited with exit code 143."
    assert judged(tmp_path, REPORT.format(said=said)).outcome == "unknown"


def test_the_error_of_the_program_goes_before_its_exit_code(tmp_path: Path) -> None:
    assert root(judged(tmp_path, trace("KeyError: 'a'") + EXIT)).title == "KeyError: 'a'"
    (tmp_path / "alone").mkdir()
    assert root(judged(tmp_path / "alone", EXIT)).id == "lsf_exit"


LIMIT = "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140."


@pytest.mark.parametrize("said", ["Exited with exit code 1.", LIMIT])
def test_the_error_may_be_in_the_other_file(tmp_path: Path, said: str) -> None:
    found = judged(tmp_path, REPORT.format(said=said), trace("KeyError: 'a'"))
    assert root(found).title == "KeyError: 'a'"


@pytest.mark.parametrize(
    ("first", "second", "outcomes"),
    [(trace("KeyError: 'a'") + EXIT, DONE, "fs"), (DONE, trace("KeyError: 'a'") + EXIT, "sf")],
)
def test_jobs_in_one_file_are_told_apart(
    tmp_path: Path, first: str, second: str, outcomes: str
) -> None:
    found = judged(tmp_path, first + second)
    assert found.earlier[0].outcome[0] + found.outcome[0] == outcomes
    assert found.line == first.count("\n")


def test_a_report_at_the_end_of_a_log_begins_nothing(tmp_path: Path) -> None:
    assert judged(tmp_path, DONE + "PS:\n\nRead file <a.err> for stderr output.\n").earlier == ()
    assert judged(tmp_path, EXIT_1 + EXIT).earlier == ()
