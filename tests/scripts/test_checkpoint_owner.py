"""Jobs with one folder of checkpoints, run by bash: which of them may use it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from tests.scripts.job_starts import save


@pytest.fixture
def jobs(tmp_path: Path, plan: Callable[..., LaunchPlan]) -> JobsOfOneFolder:
    return JobsOfOneFolder(tmp_path, plan, "slurm-generic")


def test_the_next_job_of_a_chain_goes_on(jobs: JobsOfOneFolder) -> None:
    assert jobs.start("a") == ""
    assert jobs.owner == str(jobs.folder / "a")
    said = jobs.start("b", job=2)
    assert f"those of the run {jobs.folder / 'a'}, which has ended\n" in said
    assert jobs.owner == str(jobs.folder / "b")
    assert jobs.files == ["owner", "saved"]


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "SUSPENDED"])
def test_a_job_beside_another_is_refused(jobs: JobsOfOneFolder, state: str) -> None:
    """A job that waits to be started again has an end in status.json."""
    jobs.start("a")
    jobs.queue(f"1 {state}")
    said = jobs.start("b", job=2, lifecycle={"requeue_on": [2, 75]})
    assert said.startswith("refused: hpctrain: the checkpoints in ckpt are not used: the run ")
    assert "/a has not ended" in said
    assert "dependency: singleton" in said
    assert said.endswith("if that run is lost, rm ckpt/owner\n")
    status = json.loads((jobs.folder / "b" / "status.json").read_text())
    assert (status["exit_code"], status["ended"] is None) == (2, False)
    assert not (jobs.folder / "requeued").exists()
    assert not (jobs.folder / "b" / "restarts.jsonl").exists()
    assert jobs.owner == str(jobs.folder / "a")
    assert jobs.files == ["owner", "saved"]
    assert "/b" not in (jobs.folder / "ckpt" / "saved").read_text()


def test_a_job_that_is_started_again_keeps_its_folder(jobs: JobsOfOneFolder) -> None:
    extra = {"SLURM_RESTART_COUNT": "1", "CODE": "75"}
    jobs.start("a", lifecycle={}, environment={"CODE": "75"})
    jobs.queue("1 RUNNING")
    assert "which has ended" not in jobs.start("a", lifecycle={}, environment=extra)
    assert (jobs.folder / "ckpt" / "saved").read_text().count("/a\n") == 2


def test_another_training_is_refused(jobs: JobsOfOneFolder) -> None:
    jobs.start("a", name="one")
    said = jobs.start("b", name="other", job=2)
    assert said.startswith("refused: ")
    assert "they are those of the job one (" in said
    assert "and this one is other; give this job another folder" in said
    (jobs.folder / "ckpt" / "owner").unlink()
    assert jobs.start("b", name="other", job=2) == ""


def test_a_run_whose_node_was_lost_has_ended(jobs: JobsOfOneFolder) -> None:
    jobs.start("a")
    jobs.note("a", ended=None, host="n9")
    assert "which has ended" in jobs.start("b", job=2)


@pytest.mark.parametrize(("ended", "free"), [(7.5, True), (None, False)])
def test_without_an_answer_of_slurm_the_files_count(
    jobs: JobsOfOneFolder, ended: Any, free: bool
) -> None:
    jobs.start("a")
    jobs.note("a", ended=ended, host="n9")
    (jobs.folder / "gone").touch()
    assert jobs.start("b", job=2).startswith("refused: ") is not free


def test_of_two_jobs_that_start_together_one_goes_on(jobs: JobsOfOneFolder) -> None:
    """The second finds the file of the first between its look and its own."""
    jobs.start("a")
    jobs.queue("2 RUNNING")
    (jobs.folder / "b").mkdir()
    (jobs.folder / "b" / "status.json").write_text('{"job": "2", "ended": null}\n')
    (jobs.folder / "taken").write_text(f"demo\n{jobs.folder / 'b'}\n\n")
    (jobs.folder / "bin" / "mv").write_text(
        '#!/bin/bash\n[[ $2 != */owner ]] || cp taken "$2"\nexec /bin/mv "$@"\n'
    )
    (jobs.folder / "bin" / "mv").chmod(0o755)
    assert "/b has not ended" in jobs.start("c", job=3)
    assert jobs.owner == str(jobs.folder / "b")


def test_a_process_that_is_gone_frees_its_folder(
    tmp_path: Path, plan: Callable[..., LaunchPlan]
) -> None:
    jobs = JobsOfOneFolder(tmp_path, plan, "local")
    jobs.start("a")
    jobs.note("a", ended=None, pid=os.getpid())
    assert jobs.start("b").startswith("refused: ")
    with subprocess.Popen(["true"]) as ended:
        pass
    jobs.note("a", pid=ended.pid)
    assert "which has ended" in jobs.start("b")


# Lists the jobs of the file `queue`; a controller that is gone does not answer.
SQUEUE = """\
#!/bin/bash
job=${2#--jobs=}
[ ! -e gone ] || { echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }
grep -qs "^$job " queue || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
sed -n "s/^$job //p" queue
"""
SCONTROL = """\
#!/bin/bash
[ "$1 $2" != "show job" ] || echo "JobId=1 JobState=RUNNING PreemptTime=None A="
[ "$1" != requeue ] || touch requeued
"""
SAVE = 'echo "$HPCTRAIN_RUN" >>"$HPCTRAIN_CHECKPOINTS/saved"; exit "${CODE:-0}"'


class JobsOfOneFolder:
    """Jobs whose runs share the folder `ckpt`."""

    def __init__(self, folder: Path, plan: Callable[..., LaunchPlan], site: str) -> None:
        self.folder, self.plan, self.site = folder, plan, site
        (folder / "bin").mkdir()
        for program, text in (("squeue", SQUEUE), ("scontrol", SCONTROL)):
            (folder / "bin" / program).write_text(text)
            (folder / "bin" / program).chmod(0o755)
        (folder / "bin" / "sleep").symlink_to("/bin/true")

    def start(self, run: str, *, name: str = "demo", job: int = 1, **more: Any) -> str:
        """Run a job to its end; return what it prints if it used the folder, else `refused: …`."""
        keys: dict[str, Any] = {"name": name, "env": {"HPCTRAIN_CHECKPOINTS": "ckpt"}, **more}
        environment = keys.pop("environment", {})
        plan = self.plan(self.site, command=["bash", "-c", SAVE], launcher="single", **keys)
        (self.folder / run).mkdir(exist_ok=True)
        save(render_script(plan), self.folder / run / "job.sbatch")
        done = subprocess.run(
            ["bash", f"{run}/job.sbatch", run],
            cwd=self.folder,
            env={
                "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
                "SLURM_JOB_ID": str(job),
                "SLURM_JOB_NODELIST": "localhost",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=240,
        )
        if done.returncode == 2:
            return f"refused: {done.stderr}"
        assert done.returncode == int(environment.get("CODE", 0)), done.stderr
        return done.stdout + done.stderr

    def note(self, run: str, **facts: Any) -> None:
        """Change status.json of a run."""
        file = self.folder / run / "status.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **facts}) + "\n")

    def queue(self, *lines: str) -> None:
        (self.folder / "queue").write_text("".join(f"{line}\n" for line in lines))

    @property
    def owner(self) -> str:
        return (self.folder / "ckpt" / "owner").read_text().splitlines()[1]

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "ckpt").iterdir())


@pytest.mark.parametrize(("ended", "free"), [(7.5, True), (None, False)])
def test_a_job_that_slurm_still_ends_has_ended_if_its_script_has(
    jobs: JobsOfOneFolder, ended: Any, free: bool
) -> None:
    jobs.start("a")
    jobs.note("a", ended=ended, host="n9")
    jobs.queue("1 COMPLETING")
    assert jobs.start("b", job=2).startswith("refused: ") is not free


def test_a_file_system_without_links_has_owners(jobs: JobsOfOneFolder) -> None:
    (jobs.folder / "bin" / "ln").symlink_to("/bin/false")
    assert jobs.start("a") == ""
    assert jobs.owner == str(jobs.folder / "a")
    assert "which has ended" in jobs.start("b", job=2)
    assert jobs.owner == str(jobs.folder / "b")
    assert jobs.files == ["owner", "saved"]
