"""The mistakes of the first hour: each message states the place, the reason and what to do next."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from tests.cases import cases
from tests.cli.conftest import Hpctrain

STORED = Path(__file__).parents[1] / "stored/schema-1"
LOCAL = "submit train.py --site local"
FULL = """
import subprocess, sys
with open("/dev/full", "w") as full:
    words = [sys.executable, "-m", "hpc_train", *sys.argv[1:]]
    sys.exit(subprocess.run(words, stdout=full).returncode)
"""
INTERRUPTED = """
import os, signal
from hpc_train.cli.main import main
os.dup2(os.pipe()[0], 0)
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 0.5)
main()
"""
HPCTRAIN = (sys.executable, "-m", "hpc_train")
ENDED = 'Traceback (most recent call last):\n  File "x.py", line 3, in f\nValueError: bad\n'


def newer() -> None:
    shutil.copytree(STORED / "results", "later")
    (manifest,) = Path("later/bad").glob("*/run.json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_bytes()), "schema": 2}))


def colleague() -> None:
    shutil.copytree(STORED / "results", "theirs")
    for folder in (*Path("theirs").rglob("*/"), Path("theirs")):
        folder.chmod(0o555)


def python_without_torch() -> None:
    Path("bare").write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    Path("bare").chmod(0o755)
    Path("python3").symlink_to("bare")


def python_with_torch_alone() -> None:
    """Let `python` be one that finds torch, and not hpctrain."""
    import torch

    packages = Path("packages").absolute()
    packages.mkdir()
    for entry in Path(torch.__file__).parents[1].iterdir():
        if not entry.name.startswith("hpc"):
            (packages / entry.name).symlink_to(entry)
    code = f'#!/bin/sh\nexport PYTHONPATH={packages}\nexec {sys.executable} -S "$@"\n'
    text("bin/python", code)()
    Path("bin/python").chmod(0o755)


def sites() -> None:
    text("sites/cluster.yaml", "schema: 1\n")()


def text(name: str, content: str | bytes) -> Callable[[], None]:
    def write() -> None:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)

    return write


class Mistake(NamedTuple):
    """What is typed, and what the answer contains; `start` replaces the command of hpctrain."""

    words: str
    code: int
    parts: tuple[str, ...]
    before: Callable[[], object] = lambda: None
    start: tuple[str, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})


def job(more: str = "", sep: str = "\n") -> str:
    lines = ("name: j", "command: [python, train.py]", "launcher: single")
    return sep.join((*lines, "resources: {cpus_per_task: 1, time: 5m}", more))


PLAIN = {
    name: Mistake(words, code, tuple(parts))
    for name, words, code, *parts in cases("cli/mistakes.yaml", "a_mistake_is_answered")
}
STUDY = "name: st\njob: job.yaml\nscaling: weak\nrepetitions: 1\naxes: {env.X: [1, 2]}\n"
FILES = {
    name: Mistake(f"{words} x.yaml", code, tuple(parts), text("x.yaml", content))
    for name, content, words, code, *parts in cases("cli/mistakes.yaml", "a_job_file_is_answered")
}
MISTAKES = PLAIN | FILES | {
    "profile with a typo": Mistake(
        "submit train.py --site sites/clustr.yaml", 2,
        ("sites/clustr.yaml", "did you mean 'cluster.yaml'?", "ls sites", "that --site takes"),
        sites,
    ),
    "empty folder": Mistake(
        "report logs", 2, ("logs: no log files", "contains nothing", "name other files"),
        lambda: Path("logs").mkdir(),
    ),
    "binary": Mistake(
        "report prog", 2, ("prog: is a binary file, not text", "name the log"),
        lambda: shutil.copy(sys.executable, "prog"),
    ),
    "newer version": Mistake(
        "report bad --results later", 2,
        ("run.json: written by a newer", "reads 1", "pip install --upgrade"), newer,
    ),
    "no torch": Mistake(
        "submit train.py --site local --set command.0=./python3 --launcher torchrun --wait", 1,
        ("./python3 on", "has no torch", "next: hpctrain diagnose"), python_without_torch,
    ),
    "Python with torch alone": Mistake(
        "submit --site local --wait python -m hpc_train.trainer.train --batch-size 8", 1,
        ("rank 0 on", "Python finds no module hpc_train", "next: hpctrain diagnose"),
        python_with_torch_alone,
    ),
    "two jobs in one diagnosis": Mistake(
        "diagnose a.log b.log", 0, ("== a.log", "== b.log\nFAILED  ValueError: bad"),
        lambda: (text("a.log", "step 1\n")(), text("b.log", ENDED)()),
    ),
    "study submitted twice": Mistake(
        "submit st.yaml --site local", 0,
        ("0 runs submitted, 2 exist already", "next: hpctrain status st; --set name=NAME"),
        lambda: subprocess.run([*HPCTRAIN, *"submit st.yaml --site local --wait".split()]),
    ),
    "study of another job": Mistake(
        "submit st.yaml --site local --set env.Y=1", 0, ("; 2 older runs of another job stay",),
        lambda: subprocess.run([*HPCTRAIN, *"submit st.yaml --site local --wait".split()]),
    ),
    "results of a colleague": Mistake(
        "status bad --results theirs", 0, ("rank 0 on lab1: exit code 1", "diagnose theirs/bad"),
        colleague,
    ),
    "Ctrl-C": Mistake("collect -", 130, (), start=("-c", INTERRUPTED)),
    "no home": Mistake(
        f"{LOCAL} --dry-run", 0, ("#!/bin/bash",), variables={"HOME": "/proc/none"}
    ),
    "full disk": Mistake(
        "help", 2, ("output: No space left on device", "df -h prints"), start=("-c", FULL)
    ),
    "CRLF": Mistake(
        "lint job.sh", 1, ("job.sh:1", "DOS line breaks", "lint --fix"),
        text("job.sh", "#!/bin/bash\r\n#SBATCH --nodes=1\r\n"),
    ),
    "script of sbatch": Mistake(
        "submit job.sbatch --site local", 2, ("a job script, which sbatch", "lint job.sbatch"),
        text("job.sbatch", "#!/bin/bash\n#SBATCH --nodes=2\n"),
    ),
}  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered(hpctrain: Hpctrain, name: str) -> None:
    mistake = MISTAKES[name]
    Path("train.py").write_text("print('done')\n")
    Path("job.yaml").write_text(job())
    Path("train.log").write_text("step 1 loss 2.0\n")
    Path("st.yaml").write_text(STUDY)
    mistake.before()
    words = shlex.split(mistake.words)
    if mistake.start:
        command = [sys.executable, *mistake.start, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    else:
        path = f"{Path('bin').absolute()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = hpctrain(*words, PATH=path, **mistake.variables)
    said = done.stdout + done.stderr
    assert done.returncode == mistake.code, said
    assert "hpc_train/cli/main.py" not in said
    assert [part for part in mistake.parts if part not in said] == [], said
    assert mistake.code != 2 or len(done.stderr) < 1200
