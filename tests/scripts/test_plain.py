"""`render --plain`: short scripts that start the same ranks, without the tracking of a run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.data_folders import profile_folder
from hpc_train.errors import RenderError
from hpc_train.lint.lint_script import lint_script
from hpc_train.model.plan import JobVar, LaunchPlan, Text
from hpc_train.pipeline.lint import LintOptions, make_linter
from hpc_train.pipeline.render import prepare, request_of
from hpc_train.plans.build import make_plan
from hpc_train.plans.sample_jobs import sample_jobs
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import Machine, load_site
from tests.scripts.stubs import SITE, install

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
LONGEST = 60
SITES = sorted(path.stem for path in profile_folder().glob("*.yaml"))
GOLDEN = Path(__file__).parents[1] / "golden"
# One write for each rank, so that their lines do not mix.
SAY = r'printf "%s|%s|%s|%s|%s|%s|\n" "$RANK" "$WORLD_SIZE" "$NOTE" "$OMP_NUM_THREADS" "$1" "$2"'
JOB = f"""\
name: demo
command: [bash, -c, '{SAY}', say, a b, $x]
env: {{NOTE: "it's, a b"}}
resources: {{nodes: 2, tasks_per_node: 1, cpus_per_task: 3}}
"""


def plain(file: Path, site: str, *settings: str) -> tuple[str, ...]:
    request = request_of(file, (), site, {}, settings)
    prepared = prepare(msgspec.structs.replace(request, plain=True))
    assert prepared.allocation is None
    return tuple(point.script.text for point in prepared.points)


@pytest.fixture
def files(tmp_path: Path, execute: Execute) -> Path:
    """A job, a site for it, and programs that note their words."""
    assert execute is not None
    install(tmp_path / "bin")
    (tmp_path / "notes").mkdir()
    (tmp_path / "image.img").touch()
    (tmp_path / "big.yaml").write_text(SITE)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    (folder / "job.sbatch").write_text(script)
    here = {"SLURM_JOB_NODELIST": "localhost", "NOTES": str(folder / "notes")}
    return subprocess.run(
        ["bash", "job.sbatch"],
        cwd=folder,
        env={**os.environ, **here, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize("site", SITES)
def test_the_scripts_of_each_site_are_short(site: str) -> None:
    profile = load_site(site, Machine(cpus=8, gpus=0))
    plans = (make_plan(job, profile, plain=True) for job in sample_jobs(profile.value))
    scripts = [render_script(plan, plain=True).text for plan in plans]
    assert not any("HPCTRAIN_" in script for script in scripts)
    longest = max(scripts, key=lambda script: script.count("\n"))
    assert longest.count("\n") <= LONGEST, longest
    linter = make_linter(LintOptions(site=site)).context
    assert [one for one in lint_script(longest, linter) if one.severity == "error"] == []


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "accelerate", "deepspeed", "ibrun"])
@pytest.mark.parametrize("image", ["", "container={image: image.img}"])
def test_the_ranks_are_those_of_the_tracked_script(files: Path, launcher: str, image: str) -> None:
    if image:
        (files / "big.yaml").write_text(f"{SITE}containers: {{runtime: apptainer}}\n")
    settings = [f"launcher={launcher}", *([image] if image else [])]
    (script,) = plain(files / "job.yaml", str(files / "big.yaml"), *settings)
    done = run(files, script)
    assert done.returncode == 0, done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if "|" in line)
    words = [line.split("|")[:6] for line in lines]
    assert words == [[str(rank), "2", "it's, a b", "3", "a b", "$x"] for rank in (0, 1)]
    assert not list(files.glob("**/status.json"))


def test_the_exit_code_is_that_of_the_ranks(files: Path) -> None:
    settings = ('command=["bash", "-c", "exit 7"]', "launcher=srun", "resources.nodes=1")
    (script,) = plain(files / "job.yaml", str(files / "big.yaml"), *settings)
    assert run(files, script).returncode == 7


def test_a_setup_line_that_fails_ends_the_job(files: Path) -> None:
    setup = 'setup=["false", "echo reached"]'
    (script,) = plain(files / "job.yaml", str(files / "big.yaml"), setup, "launcher=srun")
    done = run(files, script)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_missing_secret_ends_the_job_and_is_named(files: Path) -> None:
    settings = ("secrets={WANDB_API_KEY: env, HF_TOKEN: /nowhere/token}", "launcher=srun")
    (script,) = plain(files / "job.yaml", str(files / "big.yaml"), *settings)
    done = run(files, script)
    assert done.returncode == 1
    assert "/nowhere/token" in done.stderr or "WANDB_API_KEY" in done.stderr
    assert done.stdout == ""


def test_the_signal_before_the_end_reaches_the_ranks(files: Path) -> None:
    """The script gets it, and the launcher is not a task of Slurm."""
    ranks = "trap 'echo got; exit 0' USR1; kill -s USR1 $JOB; sleep 100 & wait"
    settings = (
        f"command={['bash', '-c', ranks]}",
        "launcher=mpirun",
        "signal_before_end=2m",
        "resources.nodes=1",
        "resources.time=1h",
    )
    (script,) = plain(files / "job.yaml", str(files / "big.yaml"), *settings)
    assert "#SBATCH --signal=B:USR1@120" in script
    (files / "bin" / "mpirun").write_text("#!/bin/bash\ntrap 'kill -s USR1 $(jobs -p)' USR1\n")
    done = run(files, script.replace("\nexport PYTHON", "\nexport JOB=$$\nexport PYTHON"))
    assert "got" in done.stdout, done.stderr


def test_mpirun_passes_on_the_variables_of_the_job_alone(plan: Plans) -> None:
    resources = {"nodes": 2, "tasks_per_node": 2, "cpus_per_task": 1}
    made = plan("slurm-generic", launcher="mpirun", resources=resources)
    job = Text(text="HPCTRAIN_RUN")
    assert job in made.launch.argv
    assert JobVar(name="rank_wrapper") in made.launch.argv


def test_a_nested_study_is_a_job_for_each_point(files: Path) -> None:
    job = "".join(f"  {line}\n" for line in JOB.splitlines()[1:])
    axes = "axes: {nodes: [1, 2]}\nscaling: strong\nplacement: nested\nrepetitions: 1\n"
    (files / "study.yaml").write_text(f"name: demo\n{axes}job:\n{job}")
    one, two = plain(files / "study.yaml", str(files / "big.yaml"), "launcher=srun")
    assert "#SBATCH --nodes=1" in one and "#SBATCH --nodes=2" in two
    assert "run_nodes" not in one + two


def test_a_template_of_the_site_replaces_its_blocks(files: Path) -> None:
    (files / "templates").mkdir()
    text = '{% extends "slurm.sbatch.j2" %}{% block setup %}\nsource /etc/site.sh\n{% endblock %}'
    (files / "templates" / "ours.sbatch.j2").write_text(text)
    (files / "big.yaml").write_text(f"{SITE}template: ours.sbatch.j2\n")
    (script,) = plain(files / "job.yaml", str(files / "big.yaml"), "launcher=srun")
    assert "source /etc/site.sh" in script
    assert "write_status" not in script


def test_a_template_that_is_a_whole_script_has_no_plain_form(files: Path) -> None:
    (files / "templates").mkdir()
    (files / "templates" / "ours.sbatch.j2").write_text("#!/bin/bash\necho {{ plan.name }}\n")
    (files / "big.yaml").write_text(f"{SITE}template: ours.sbatch.j2\n")
    with pytest.raises(RenderError, match=r"big\.yaml:8: the template ours\.sbatch\.j2 is a whole"):
        plain(files / "job.yaml", str(files / "big.yaml"))


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "spawn"])
@pytest.mark.parametrize("site", ["fjord", "meadow"])
def test_shellcheck_has_no_complaint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, site: str, launcher: str
) -> None:
    monkeypatch.chdir(GOLDEN)
    (script,) = plain(Path(f"jobs/{site}.yaml"), f"sites/{site}.yaml", f"launcher={launcher}")
    (tmp_path / "job.sbatch").write_text(script)
    done = subprocess.run(
        ["shellcheck", "--norc", str(tmp_path / "job.sbatch")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
