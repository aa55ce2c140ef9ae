"""Energies of jobs in reports: asked of the accounting once, stored, and never an error."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hpc_train.json_files import read_json
from hpc_train.model.job_energy import JobEnergy
from hpc_train.model.log_selection import Search
from hpc_train.model.report_options import ReportOptions
from hpc_train.model.run import RunFolder
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import submit
from hpc_train.pipeline.write_bundle import write_bundle
from hpc_train.submissions.slurm.squeue import FIELD
from tests.pipeline.on_slurm import RESULTS, age, ids, says, study
from tests.pipeline.test_run_states import read_only
from tests.submissions.slurm.fake_slurm import FakeSlurm, option

START = 1_790_000_000.0
LINE = '@hpct {"samples_per_second": 10, "global_batch_size": 8, "steps": 500}\n'
ROOT = Search(root=RESULTS)


@pytest.fixture
def home(slurm: FakeSlurm) -> Path:
    """Return the folder of a study of four runs that ended long ago, each of a minute."""
    runs = submit(study(), RESULTS, []).new
    for run in runs:
        ended(run)
    slurm.forgets()
    return runs[0].path.parent


def ended(run: RunFolder, start: float = START, **status: Any) -> None:
    says(run, started=start, ended=start + 60, exit_code=0, **status)
    (run.logs / "rank-0.out").write_text(LINE)
    age([run])


def folders(home: Path) -> list[RunFolder]:
    return sorted((run.folder for run in runs_below(home)), key=lambda run: run.run_id)


def accounts(slurm: FakeSlurm, energies: dict[str, str], start: float = START) -> None:
    """Let sacct know these jobs: from five seconds before their script to two after it."""
    when = [datetime.fromtimestamp(start + s).isoformat(timespec="seconds") for s in (-5, 62)]
    lines = [FIELD.join((job, *when, "1", energy)) for job, energy in energies.items()]
    (slurm.folder / "answer").write_text("".join(f"{line}\n" for line in lines))
    slurm.on("sacct", f"cat {slurm.folder}/answer; exit")


def energies(home: Path) -> list[float | None]:
    found = report_inputs([str(home)], ROOT).study.runs
    return [run.job_energy_j for run in sorted(found, key=lambda run: run.run_id)]


def test_one_question_for_a_study_and_its_answers_are_stored(slurm: FakeSlurm, home: Path) -> None:
    jobs = ids(folders(home))
    accounts(slurm, dict(zip(jobs, ("3600", "7200", "0", "9000"), strict=True)))
    assert energies(home) == [3600, 7200, None, 9000]
    (argv,) = slurm.calls("sacct")
    assert option(argv, "jobs") == ",".join(sorted({job.partition("_")[0] for job in jobs}))
    first, _, third, _ = folders(home)
    assert read_json(first.energy, JobEnergy) == JobEnergy(job=jobs[0], energy_j=3600)
    assert read_json(third.energy, JobEnergy).energy_j is None
    # The accounting was purged.
    accounts(slurm, {})
    assert energies(home) == [3600, 7200, None, 9000]
    assert len(slurm.calls("sacct")) == 1


def test_the_report_has_j_per_sample_and_kwh(slurm: FakeSlurm, home: Path) -> None:
    jobs = ids(folders(home))
    accounts(slurm, dict(zip(jobs, ("36000", "72000", "", "90000"), strict=True)))
    report = build_report(report_inputs([str(home)], ROOT))
    one, two = report.tables[0].records
    assert one["energy_spent_kwh"] == pytest.approx(0.03)
    assert two["energy_spent_kwh"] == pytest.approx(0.025)
    # 500 steps of 8 samples; of the whole job, so not the metered energy of the steps.
    assert one["job_energy_per_sample_j"] == pytest.approx(54000 / 4000)
    assert two["job_energy_per_sample_j"] == pytest.approx(90000 / 4000)
    assert one["energy_per_sample_j"] is None
    (note,) = (note for note in report.notes if "All points: " in note)
    third = folders(home)[2].run_id
    assert note.endswith(f"All points: 0.05500 kWh, known of 3 of 4 runs, not of {third}.")
    assert "ConsumedEnergyRaw of sacct" in note


def test_a_bundle_keeps_the_energies_and_nothing_is_asked(slurm: FakeSlurm, home: Path) -> None:
    accounts(slurm, dict.fromkeys(ids(folders(home)), "3600"))
    inputs = report_inputs([str(home)], ROOT)
    write_bundle(inputs, build_report(inputs), ReportOptions(), Path("s.tar.zst"))
    opened = report_inputs(["s.tar.zst"], ROOT)
    assert [run.job_energy_j for run in opened.study.runs] == [3600] * 4
    notes = build_report(opened).notes
    assert any("0.004000 kWh, known of 4 of 4 runs" in note for note in notes)
    assert len(slurm.calls("sacct")) == 1


def test_a_requeued_job_has_no_energy_of_a_sample(slurm: FakeSlurm, home: Path) -> None:
    for run in folders(home):
        ended(run, restart_count=1)
    accounts(slurm, dict.fromkeys(ids(folders(home)), "36000"))
    one, _ = build_report(report_inputs([str(home)], ROOT)).tables[0].records
    assert one["job_energy_per_sample_j"] is None
    assert one["energy_spent_kwh"] == pytest.approx(0.02)


def test_another_job_of_this_number_is_not_the_run(slurm: FakeSlurm, home: Path) -> None:
    """Its folder may have been copied, or be shared, to another cluster."""
    accounts(slurm, dict.fromkeys(ids(folders(home)), "3600"), start=START + 3600)
    assert energies(home) == [None] * 4
    assert not any(run.energy.exists() for run in folders(home))


def test_an_energy_that_may_come_late_is_asked_for_again(slurm: FakeSlurm, home: Path) -> None:
    now = time.time() - 65
    for run in folders(home):
        ended(run, now)
    jobs = ids(folders(home))
    accounts(slurm, dict.fromkeys(jobs, "0"), now)
    assert energies(home) == [None] * 4
    assert not any(run.energy.exists() for run in folders(home))
    accounts(slurm, dict.fromkeys(jobs, "3600"), now)
    assert energies(home) == [3600] * 4
    assert energies(home) == [3600] * 4
    assert len(slurm.calls("sacct")) == 2


@pytest.mark.parametrize(
    "body", ["exit 1", "echo garbage; exit", "printf '\\377\\n'; exit", "kill -9 $$"]
)
def test_without_an_answer_energies_are_unknown(
    slurm: FakeSlurm, home: Path, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    slurm.on("sacct", body)
    report = build_report(report_inputs([str(home)], ROOT))
    assert [row["energy_spent_kwh"] for row in report.tables[0].records] == [None, None]
    assert not any("kWh" in note for note in report.notes)
    assert not caplog.records
    assert not any(run.energy.exists() for run in folders(home))


def test_clusters_are_asked_one_after_the_other(slurm: FakeSlurm, home: Path) -> None:
    one, *others = folders(home)
    content = json.loads(one.submission.read_bytes())
    content["cluster"] = {**content.get("cluster", {}), "clusters": "west"}
    one.submission.write_text(json.dumps(content))
    slurm.on("sacct", f'echo "$SLURM_CLUSTERS" >>{slurm.folder}/asked; exit')
    energies(home)
    jobs = [option(argv, "jobs") for argv in slurm.calls("sacct")]
    assert (slurm.folder / "asked").read_text().split("\n") == ["west", "", ""]
    assert jobs[0] == ids([one])[0].partition("_")[0]
    assert jobs[1] == ",".join(sorted({job.partition("_")[0] for job in ids(others)}))


def test_only_finished_jobs_are_asked_for(slurm: FakeSlurm, home: Path) -> None:
    one, two, three, four = folders(home)
    says(one, started=START)
    two.status.unlink()
    for run in (three, four):
        content = json.loads(run.submission.read_bytes())
        run.submission.write_text(json.dumps({**content, "shared": True}))
    slurm.on(
        "squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"
    )
    energies(home)
    assert slurm.calls("sacct") == []


def test_a_report_that_watches_does_not_ask(slurm: FakeSlurm, home: Path) -> None:
    accounts(slurm, dict.fromkeys(ids(folders(home)), "3600"))
    found = report_inputs([str(home)], ROOT, runs=tuple(runs_below(home)))
    assert [run.job_energy_j for run in found.study.runs] == [None] * 4
    assert slurm.calls("sacct") == []


def test_results_that_cannot_be_written_are_not_asked_for(slurm: FakeSlurm, home: Path) -> None:
    accounts(slurm, dict.fromkeys(ids(folders(home)), "3600"))
    with read_only(home):
        assert energies(home) == [None] * 4
    assert slurm.calls("sacct") == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"job": "1", "energy_j": 5}', b"[" * 100_000])
def test_a_damaged_file_or_one_of_another_job_is_replaced(
    slurm: FakeSlurm, home: Path, content: bytes
) -> None:
    accounts(slurm, dict.fromkeys(ids(folders(home)), "3600"))
    for run in folders(home):
        run.energy.write_bytes(content)
    assert energies(home) == [3600] * 4
    assert energies(home) == [3600] * 4
    assert len(slurm.calls("sacct")) == 1
