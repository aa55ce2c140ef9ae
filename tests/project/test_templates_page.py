"""docs/templates.md: its blocks, fields and filters are those that exist, its examples render."""

import re
import subprocess
from pathlib import Path

import pytest

from hpc_train.jobs.override import Override
from hpc_train.runs.run import Script
from hpc_train.scripts.prepare import Request, prepare

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "templates.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^```jinja\n(?P<text>\{# (?P<name>\S+) #\}\n.*?)^```$", re.M | re.S)
SITE = """\
schema: 1
name: mysite
description: d
scheduler: {scheduler}
template: {template}
launchers: {{default: torchrun, allowed: [torchrun, srun, mpirun, spawn, single]}}
setup: [module load python]
"""
EXAMPLES = {match["name"]: match["text"] for match in EXAMPLE.finditer(PAGE)}


def example(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, launcher: str) -> Script:
    monkeypatch.chdir(folder)
    (folder / "templates").mkdir(exist_ok=True)
    (folder / "templates" / name).write_text(EXAMPLES[name])
    scheduler = "local" if name == "plain.sh.j2" else "slurm"
    (folder / "mysite.yaml").write_text(SITE.format(scheduler=scheduler, template=name))
    (folder / "train.py").touch()
    settings = {"launcher": launcher, "resources.cpus_per_task": 1, "resources.tasks_per_node": 1}
    overrides = tuple(Override(key=k, value=v, origin="--set") for k, v in settings.items())
    request = Request(path=Path("train.py"), site="mysite", overrides=overrides)
    return prepare(request).points[0].script


@pytest.mark.process
def test_each_example_is_a_sound_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name in EXAMPLES:
        for launcher in ("torchrun", "spawn", "single"):
            text = example(name, tmp_path, monkeypatch, launcher).text
            assert text.startswith("#!/bin/bash\n")
            made.append(tmp_path / f"{name}.{launcher}.sh")
            made[-1].write_text(text)
    done = subprocess.run(["shellcheck", *made], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_example_adds_directives_and_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = example("mysite.sbatch.j2", tmp_path, monkeypatch, "srun").text.splitlines()
    directives = [i for i, line in enumerate(lines) if line.startswith("#SBATCH")]
    assert lines[directives[-1]] == "#SBATCH --licenses=scratch"
    assert directives == list(range(1, len(directives) + 1)), "not an empty line between them"
    own = lines.index("module load CUDA/12.4 || exit 1")
    assert own < lines.index("module load python")


def test_the_second_example_checks_before_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = example("checked.sbatch.j2", tmp_path, monkeypatch, "srun").text
    check = text.index("if ! srun --ntasks=1 --ntasks-per-node=1 test -d /scratch/imagenet; then")
    assert text.index("export OMP_NUM_THREADS=") < check < text.index("\nhpctrain_run ")
