"""From nothing to a figure: the ways on the lab as their pages show them, and own scripts and logs.

Every command of the pages prints what is shown. A script becomes a figure with two commands, and
each speedup is one computed by hand. The other parts of `make tour` are in test_first_pages.py and
tests/api/test_example_notebook.py.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hpc_train.lab.state_file import Lab
from tests.command_line import run_command
from tests.end_to_end.user import user_of
from tests.project.tour import MOST_TO_A_FIGURE, desk, to_the_first_figure, walk_the_lab

Typed = Callable[..., subprocess.CompletedProcess[str]]
WAYS = yaml.safe_load(Path(__file__).with_name("tour.yaml").read_text())
HEAD = """\
import os, sys, time
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PAUSE = float(sys.argv[RANKS])
def sleep(seconds):
    before = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - before
"""
TIMES = re.compile(r", ([\d.]+) times (?:the work of )?1 (?:rank|node)\b")


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Return what types a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return lambda *words: run_command(words, {**os.environ, "PATH": path, "COLUMNS": "100"})


def walk(study: str, folder: Path, typed: Typed, sizes: str) -> None:
    """Type the three commands of a script: two to a figure, one for the other kind of scaling."""
    way, name = WAYS["studies"][study], study.split()[0]
    (folder / f"{name}.py").write_text(HEAD + WAYS["scripts"][name])
    own, other = ("strong", "weak") if way["scaling"] == "strong" else ("weak", "strong")
    words = f"submit {name}.py --cpus-per-task 1 {sizes} --set repetitions=1"
    words += "" if way.get("assumed") else f" --set scaling={own}"
    ended = typed(*f"{words} --wait -- {way['arguments']}".split())
    answer = ended.stderr.rpartition("COMPLETED")[2]
    assert len(answer.splitlines()) <= 5
    assert answer.endswith(f"\nnext: hpctrain report {name}\n")
    drawn = typed("report", name, "-o", f"{name}.pdf")
    again = typed("report", name, "--scaling", other)
    for done, scaling in ((ended, own), (drawn, own), (again, other)):
        said = " ".join((done.stdout + done.stderr).split())
        if scaling not in way:
            assert done.returncode == 2
            assert f"declared {other} scaling, but the data are {own}" in said
            continue
        assert done.returncode == 0, said
        if done is not drawn:
            found = TIMES.search(said)
            assert found is not None, said
            assert float(found[1]) == pytest.approx(way[scaling], rel=way["within"])
    assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.mpi
@pytest.mark.process
@pytest.mark.parametrize("name", WAYS["studies"])
def test_a_script_on_this_machine(name: str, typed: Typed, tmp_path: Path) -> None:
    walk(name, tmp_path, typed, "--site local --launcher mpirun --tasks-per-node 1,2")


@pytest.mark.slurm
def test_a_script_on_two_nodes(lab: Lab, tmp_path: Path) -> None:
    user = user_of(lab, tmp_path)
    walk(
        "nanogpt",
        tmp_path,
        user.hpctrain,
        "--site lab --launcher srun --nodes 1,2 --gpus-per-node 0 -t 5m",
    )


@pytest.mark.parametrize("name", WAYS["excerpts"])
def test_logs_whose_sizes_are_stated(name: str, typed: Typed) -> None:
    excerpt = WAYS["excerpts"][name]
    for log, value in zip(("8.log", "16.log"), excerpt["values"], strict=True):
        lines = (excerpt["line"].replace("<n>", str(n)) for n in range(1, 30))
        Path(log).write_text("".join(line.replace("<v>", str(value)) + "\n" for line in lines))
    done = typed("report", "8.log", "16.log", "--gpus", "8,16", "-f", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    small, large = json.loads(done.stdout)["rows"]
    assert (small["gpus"], large["gpus"]) == (8, 16)
    assert large["speedup"]["value"] == pytest.approx(1.8)


@pytest.mark.parametrize("words", WAYS["words"])
def test_words_of_sbatch(words: str, typed: Typed) -> None:
    Path("train.py").touch()
    start = "render train.py --site slurm-generic --launcher srun -t 1h"
    done = typed(*start.split(), *words.split())
    assert done.returncode == 0, done.stderr
    assert f"#SBATCH {WAYS['words'][words]}" in done.stdout.splitlines()


@pytest.mark.long
@pytest.mark.slurm
def test_the_ways_on_the_lab(no_lab: None, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    typed = list(walk_the_lab(tmp_path, desk(tmp_path)))
    wrong = [f"$ {one.line}\n{one.difference}" for _, one in typed if one.difference]
    assert not wrong, "\n".join(wrong)
    assert len(typed) >= 15
    assert (tmp_path / "nodes.pdf").read_bytes().startswith(b"%PDF")


def test_a_first_figure_takes_few_commands() -> None:
    lines = to_the_first_figure()
    assert lines[0].startswith("pip install")
    assert " -o " in lines[-1]
    assert len(lines) <= MOST_TO_A_FIGURE
