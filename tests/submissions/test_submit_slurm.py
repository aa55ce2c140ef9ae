"""Submitting to Slurm: what sbatch is asked, and what is left when it refuses."""

from pathlib import Path

import pytest

from hpc_train.base.errors import PlanError, SubmitError
from hpc_train.runs.json_files import read_json
from hpc_train.runs.run import JobState, Manifest, RunFolder
from hpc_train.runs.run_states import runs_below
from hpc_train.scripts.prepare import Prepared
from hpc_train.submissions.submit import dry_run, submit
from tests.slurm.fake_slurm import FakeSlurm, option
from tests.submissions.on_slurm import RESULTS, folders, ids, job, profile, study, submission


def test_a_point_is_an_array_of_its_repetitions(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, ["x"])
    first, second = slurm.calls("sbatch")
    stems = [run.run_id.rpartition("-r")[0] for run in done.new]
    for argv, stem in ((first, stems[0]), (second, next(s for s in stems if s != stems[0]))):
        folder = f"{done.home.absolute()}/{stem}"
        assert option(argv, "output") == f"{folder}-r%a/logs/job.out"
        assert option(argv, "array") == "1,2"
        assert option(argv, "exclude") is None
        assert argv[-2:] == [f"{folder}-r", ""]
        assert Path(argv[-3]).parent.name.startswith(stem)
    assert sorted(ids(done.new)) == ["1001_1", "1001_2", "1002_1", "1002_2"]
    assert slurm.ids() == ["1001_1", "1001_2", "1002_1", "1002_2"]


def test_what_was_asked_is_written_down(slurm: FakeSlurm) -> None:
    (run,) = submit(job(), RESULTS, []).new
    (argv,) = slurm.calls("sbatch")
    found = submission(run)
    assert found.command == ("sbatch", *argv)
    assert (found.executor, found.native_id, found.answered) == ("slurm", "1001", True)
    assert found.comment == option(argv, "comment")
    assert found.comment.startswith("hpctrain:")
    assert argv[-2:] == [str(run.script.absolute()), str(run.path.absolute())]
    assert option(argv, "array") is None
    manifest = read_json(run.manifest, Manifest)
    assert (manifest.repetition, manifest.attempt, manifest.study) == (1, 1, None)


def test_the_sites_limits(slurm: FakeSlurm) -> None:
    site = profile("limits: {max_array_running: 1, max_array_size: 2}")
    submit(study("repetitions=3", site=site), RESULTS, [])
    arrays = [option(argv, "array") for argv in slurm.calls("sbatch")]
    # Elements 1 alone are no array; 2 and 3 do not fit below the site's size.
    assert arrays == [None] * 6
    site = profile("limits: {max_array_running: 1, max_array_size: 3}")
    submit(study("repetitions=3", "name=t", site=site), RESULTS, [])
    arrays = [option(argv, "array") for argv in slurm.calls("sbatch")[6:]]
    assert sorted(map(str, arrays)) == ["1,2%1", "1,2%1", "None", "None"]


def test_slurms_own_array_size(slurm: FakeSlurm) -> None:
    slurm.on("scontrol", "echo 'MaxArraySize            = 0'; exit")
    submit(study(), RESULTS, [])
    assert [option(argv, "array") for argv in slurm.calls("sbatch")] == [None] * 4


def test_too_many_jobs_for_the_queue(slurm: FakeSlurm) -> None:
    site = profile("limits: {max_submit_jobs: 3}")
    with pytest.raises(SubmitError, match="4 jobs, but the site allows 3 in the queue at once"):
        submit(study(site=site), RESULTS, [])
    assert slurm.calls("sbatch") == []
    assert not RESULTS.exists()
    assert len(submit(study("repetitions=1", site=site), RESULTS, []).new) == 2
    assert len(submit(study("name=t", "repetitions=1", points=3, site=site), RESULTS, []).new) == 3
    nested = study("name=u", "placement=nested", "time=1m", site=site)
    assert len(submit(nested, RESULTS, []).new) == 4, "which is one job"


def test_when_the_first_is_refused_nothing_is_left(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    for prepared in (job(), study(), study("placement=nested", "time=1m")):
        with pytest.raises(SubmitError) as failure:
            submit(prepared, RESULTS, [])
        assert failure.value.message == "sbatch: invalid partition specified: x"
        assert failure.value.hint == "sinfo -s lists the partitions; name one with --partition"
        assert not RESULTS.exists()


def test_a_refusal_in_the_middle_leaves_what_was_submitted(slurm: FakeSlurm) -> None:
    refuse = "[ $n != 3 ] || { echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1; }"
    slurm.on("sbatch", refuse)
    with pytest.raises(SubmitError) as failure:
        submit(study(points=4), RESULTS, [])
    said = "4 of 8 runs were submitted, then: sbatch: QOSMaxSubmitJobPerUserLimit"
    assert failure.value.message == said
    assert failure.value.hint == "submit again for the rest"
    names = folders(RESULTS / "s")
    assert len(names) == 5, "the study, and the runs that were submitted"
    assert sorted(ids(RunFolder(path=RESULTS / "s" / name) for name in names[:4])) == slurm.ids()
    again = submit(study(points=4), RESULTS, [])
    assert (len(again.new), len(again.kept)) == (4, 4)
    assert all(run.run_id.endswith(("-r1", "-r2")) for run in again.new), "no attempt was used up"


def test_a_refused_study_leaves_an_older_one_as_it_was(slurm: FakeSlurm) -> None:
    home = submit(study(), RESULTS, []).home
    before = {path: path.read_bytes() for path in home.rglob("*.json")}
    slurm.on("sbatch", "echo 'sbatch: error: no' >&2; exit 1")
    with pytest.raises(SubmitError):
        submit(study("repetitions=4"), RESULTS, [])
    slurm.on("sbatch", "")
    assert {path: path.read_bytes() for path in home.rglob("*.json")} == before
    assert len(runs_below(home)) == 4


def test_a_nested_study_is_one_job_for_all(slurm: FakeSlurm) -> None:
    done = submit(study("placement=nested", "time=1m"), RESULTS, [])
    (argv,) = slurm.calls("sbatch")
    script = Path(argv[-2])
    assert script.parent == (done.home / ".allocations").absolute()
    assert argv[-1] == str(done.home.absolute())
    assert option(argv, "output") == str(script.with_suffix(".out"))
    assert ids(done.new) == ["1001"] * 4
    assert all(submission(run).shared for run in done.new)
    text = script.read_text()
    assert all(run.run_id in text for run in done.new)
    assert {run.state for run in runs_below(done.home)} == {JobState.PENDING}


def test_the_script_of_an_allocation_is_made_of_the_templates_beside_the_profile(
    slurm: FakeSlurm,
) -> None:
    site = profile("")
    Path("templates").mkdir()
    Path("templates/nested.sbatch.j2").write_text("#!/bin/bash\n# mine\n")
    prepared = study("placement=nested", "time=1m", site=site)
    submit(prepared, RESULTS, [])
    assert prepared.allocation is not None
    script = Path(slurm.calls("sbatch")[0][-2])
    assert script.read_text() == prepared.allocation.text == "#!/bin/bash\n# mine\n"


def test_the_cost_is_told_and_may_be_too_much(slurm: FakeSlurm) -> None:
    said: list[str] = []
    settings = ("launcher=srun", "gpus_per_node=2", "time=30m")
    with pytest.raises(PlanError, match=r"--max-gpu-hours 3\.9: 4 runs: at most 4 GPU-hours"):
        submit(study(*settings), RESULTS, [], said.append, max_gpu_hours=3.9)
    assert (said, slurm.calls("sbatch"), RESULTS.exists()) == ([], [], False)
    submit(study(*settings), RESULTS, [], said.append, max_gpu_hours=4)
    assert said == [
        "cost: 4 runs: at most 4 GPU-hours, 4 core-hours",
        "2 repetitions resolve about ±14 % at 2 % noise (3: ±5 %, 5: ±3 %)",
    ]


# It keeps a copy of the script, which is gone afterwards.
VERDICT = 'cp "${@: -1}" "$S/script.$n"; echo "sbatch: Job 9 to start" >&2; exit 0'
REFUSED = (
    "echo 'allocation failure: Invalid account or account/partition combination specified' >&2; "
    "exit 1"
)


def said(prepared: Prepared, max_gpu_hours: float | None = None) -> list[str]:
    return list(dry_run(prepared, RESULTS, max_gpu_hours))


def test_sbatch_is_asked_about_the_script(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", VERDICT)
    prepared = job("time=1h")
    assert said(prepared) == [
        "cost: 1 run: at most no GPUs, 1 core-hours",
        "sbatch --test-only: Job 9 to start",
    ]
    (argv,) = slurm.calls("sbatch")
    assert argv[0] == "--test-only"
    assert not Path(argv[1]).exists()
    assert (slurm.folder / "script.1").read_text() == prepared.points[0].script.text
    assert not RESULTS.exists()


def test_each_point_of_a_study_is_asked_about(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", VERDICT)
    prepared = study("time=30m", "repetitions=3")
    cost, resolved, *verdicts = said(prepared)
    assert cost == "cost for the whole study: 6 runs: at most no GPUs, 3 core-hours"
    assert resolved.startswith("3 repetitions resolve about ±5 %")
    assert verdicts == [
        f"sbatch --test-only {point.stem}: Job 9 to start" for point in prepared.points
    ]


def test_a_refusal_is_a_verdict_not_an_error(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", REFUSED)
    (_, verdict) = said(job())
    assert verdict.startswith("sbatch --test-only: refused: allocation failure: Invalid account")
    assert "--account" in verdict
