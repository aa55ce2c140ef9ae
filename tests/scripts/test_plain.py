"""`render --plain`: short scripts that start the same ranks, without the tracking of a run."""

import json
import shlex
from pathlib import Path

import pytest

from hpc_train.base.errors import RenderError
from tests.scripts.plain_scripts import plain, run
from tests.scripts.stubs import SITE


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


def test_a_template_that_is_a_whole_script_has_no_plain_form(files: Path) -> None:
    (files / "templates").mkdir()
    (files / "templates" / "ours.sbatch.j2").write_text("#!/bin/bash\necho {{ plan.name }}\n")
    (files / "big.yaml").write_text(f"{SITE}template: ours.sbatch.j2\n")
    with pytest.raises(RenderError, match=r"big\.yaml:8: the template ours\.sbatch\.j2 is a whole"):
        plain(files / "job.yaml", str(files / "big.yaml"))
