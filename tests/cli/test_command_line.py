"""Options as people type them: those of the script, of other launchers, several sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

MOVED = {
    "train.py --epochs 3": "train.py -- --epochs 3",
    "--epochs 3 train.py": "train.py -- --epochs 3",
    "train.py --epochs=3 --nodes 1": "train.py --nodes 1 -- --epochs=3",
    "train.py --nodes 1 -x --flag 7 -- --own": "train.py --nodes 1 -- -x --flag 7 --own",
}


@pytest.fixture(autouse=True)
def _script(hpctrain: Hpctrain) -> None:
    Path("train.py").write_text("print('done')\n")


@pytest.mark.parametrize("words", MOVED)
@pytest.mark.parametrize("verb", ["submit", "explain"])
def test_an_option_of_the_script_follows_after_two_dashes(
    hpctrain: Hpctrain, verb: str, words: str
) -> None:
    done = hpctrain(verb, *words.split())
    assert done.returncode == 2
    assert done.stderr.endswith(f"follow after --:\n  hpctrain {verb} {MOVED[words]}\n")
    assert not Path("results").exists()


def test_a_misspelt_option_is_named(hpctrain: Hpctrain) -> None:
    said = hpctrain("submit", "train.py", "--tasks-pernode", "2").stderr
    assert "Did you mean '--tasks-per-node'?" in said
    assert "Did you mean" not in hpctrain("submit", "train.py", "--epochs", "2").stderr


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ("--gpus 0", "--gpus-per-node 0"),
        ("--nproc-per-node 2", "--tasks-per-node 2"),
        ("--nproc_per_node 2", "--tasks-per-node 2"),
        ("--nnodes 1", "--nodes 1"),
    ],
)
def test_options_of_other_launchers(hpctrain: Hpctrain, typed: str, same: str) -> None:
    render = ("render", "train.py", "--site", "local")
    done = hpctrain(*render, *typed.split())
    assert done.returncode == 0, done.stderr
    assert f"taken as {same}, " in done.stderr
    assert done.stdout == hpctrain(*render, *same.split()).stdout
    twice = hpctrain(*render, *typed.split(), *same.split())
    assert twice.returncode == 2
    assert "is the same as" in twice.stderr


@pytest.mark.process
@pytest.mark.parametrize("file", ["train.py"])
def test_several_sizes_are_a_study(hpctrain: Hpctrain, file: str) -> None:
    Path("job.yaml").write_text("command: [python, train.py]\n")
    words = (file, "--site", "local", "--tasks-per-node", "1,2", "--set", "repetitions=1")
    done = hpctrain("submit", *words, "--wait")
    assert done.returncode == 0, done.stderr
    assert "a study of 2 sizes, 1 run of each; strong scaling: the global batch" in done.stderr
    name = Path(file).stem
    state = hpctrain("status", name).stdout
    assert state.startswith("2 COMPLETED")
    again = hpctrain("submit", *words)
    assert "0 runs submitted, 2 exist already" in again.stderr


def test_sizes_of_a_study_are_its_axes(hpctrain: Hpctrain) -> None:
    Path("s.yaml").write_text("name: s\njob: {command: [a]}\naxes: {nodes: [1]}\nscaling: strong\n")
    done = hpctrain("render", "s.yaml", "--site", "local", "--nodes", "1,2")
    assert done.returncode == 2
    assert "--nodes 1,2: s.yaml is a study" in done.stderr
    assert "--set 'axes.nodes=[1,2]'" in done.stderr


def test_a_script_is_not_written_into_a_missing_folder(hpctrain: Hpctrain) -> None:
    done = hpctrain("render", "train.py", "--site", "local", "-o", "no where/job.sbatch")
    assert done.returncode == 2
    assert "there is no folder no where" in done.stderr
    assert "  mkdir -p 'no where'\n" in done.stderr
    assert not Path("no where").exists()


@pytest.mark.parametrize("path", ["./my.yaml", "my.yaml", "sites/my"])
def test_a_site_that_looks_like_a_path_is_one(hpctrain: Hpctrain, path: str) -> None:
    done = hpctrain("render", "train.py", "--site", path)
    assert done.returncode == 2
    assert f"hpctrain: {Path(path)}: No such file" in done.stderr
    assert "unknown site" not in done.stderr
