"""`render --plain`: short scripts that start the same ranks, without the tracking of a run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import RenderError
from hpc_train.lint.lint_file import make_linter
from hpc_train.lint.lint_script import lint_script
from hpc_train.plans.build import make_plan
from hpc_train.plans.sample_jobs import sample_jobs
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.run import RunFolder
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import Machine, load_site
from hpc_train.slurm.sbatch import SbatchCall
from tests.scripts.plain_scripts import JOB, plain, run
from tests.scripts.site_jobs import changed, images
from tests.scripts.stubs import SITE

LONGEST = 60
# One of each vendor, fabric and launcher; the net has the scripts of all.
SITES = ("frontier", "juwels-booster", "leonardo", "local", "perlmutter", "slurm-generic")
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("site", SITES)
def test_the_scripts_of_each_site_are_short(site: str, image: bool) -> None:
    """Each launcher on 1, 2 and the maximum of nodes of each partition."""
    profile = load_site(site, Machine(cpus=8, gpus=0))
    jobs = images(profile) if image else sample_jobs(profile.value)
    scripts = [render_script(make_plan(job, profile, plain=True)).text for job in jobs]
    for script in scripts:
        # What PBS has no program for: one process on each node, which learns its number.
        body = re.sub(r"(?s)\neach_node=.*?\nNODES\n\)\n", "\n", script)
        assert "HPCTRAIN_" not in body.replace("HPCTRAIN_NODE_RANK", "")
        assert body.count("\n") <= LONGEST, script
        assert "\n\n\n" not in script
    linter = make_linter(site=site).context
    for script in sorted(scripts, key=len)[-1:]:
        assert [one for one in lint_script(script, linter) if one.severity == "error"] == []


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


@pytest.mark.parametrize("site", SITES)
def test_the_directives_are_those_of_the_submitted_job(site: str) -> None:
    """`submit` states output, comment, elements and excluded nodes on the command line."""
    profile = load_site(site, Machine(cpus=8, gpus=0))
    for sample in sample_jobs(profile.value):
        job = changed(sample, comment="run 3, see notes")
        full = directives(render_script(make_plan(job, profile)).text)
        made = directives(render_script(make_plan(job, profile, plain=True)).text)
        comment = ['#SBATCH --comment="run 3, see notes"'] if full else []
        assert made == full + comment


def test_plain_lacks_only_what_belongs_to_one_submission(files: Path) -> None:
    folder = RunFolder(path=files / "run")
    call = SbatchCall(runs=(folder,), script=files / "job", text="", output="o", arguments=())
    options = ExecutorOptions(comment="c", exclude=("n1",))
    arrays = msgspec.structs.replace(call, elements=(1, 2))
    given = [word for word in arrays.command(options, "c") if word.startswith("--")]
    names = {option.partition("=")[0] for option in given}
    assert names == {"--output", "--comment", "--array", "--exclude"}


@pytest.mark.parametrize("comment", ["short", 'it\'s "so" \\ #1', "a=b $HOME --nodes=3"])
def test_a_comment_is_one_word_of_sbatch(files: Path, comment: str) -> None:
    settings = (f"comment={json.dumps(comment)}", "launcher=srun")
    (script,) = plain(files / "job.yaml", str(files / "big.yaml"), *settings)
    (line,) = [line for line in directives(script) if "comment" in line]
    assert shlex.split(line) == ["#SBATCH", f"--comment={comment}"]


def directives(script: str) -> list[str]:
    return [line for line in script.splitlines() if line.startswith("#SBATCH ")]


def test_the_exit_code_is_that_of_the_ranks(files: Path) -> None:
    settings = ('command=["bash", "-c", "exit 7"]', "launcher=srun", "resources.nodes=1")
    (script,) = plain(files / "job.yaml", str(files / "big.yaml"), *settings)
    assert run(files, script).returncode == 7


def test_a_missing_secret_ends_the_job_and_is_named(files: Path) -> None:
    settings = ("secrets={WANDB_API_KEY: env, HF_TOKEN: /nowhere/token}", "launcher=srun")
    (script,) = plain(files / "job.yaml", str(files / "big.yaml"), *settings)
    done = run(files, script)
    assert done.returncode == 1
    assert "/nowhere/token" in done.stderr or "WANDB_API_KEY" in done.stderr
    assert done.stdout == ""


def test_the_signal_before_the_end_reaches_the_ranks(files: Path) -> None:
    """The script gets it, and the launcher is not a task of Slurm."""
    ranks = "trap 'echo got; exit 0' USR1; kill -s USR1 $JOB; sleep 100 &>/dev/null & wait"
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
    done = run(files, script.replace("\nMASTER_ADDR", "\nexport JOB=$$\nMASTER_ADDR"))
    assert "got" in done.stdout, done.stderr


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


@pytest.mark.process
@pytest.mark.parametrize("launcher", ["torchrun", "spawn"])
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
