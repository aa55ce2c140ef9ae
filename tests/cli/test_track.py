"""`hpctrain track`: exit codes, and what is printed where."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.runs.track_files import store
from tests.tables.histories import history

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
STUDY = Path(__file__).resolve().parents[2] / "results" / "studies" / "digits-two-cores"
STEP = [100.0] * 20 + [90.0] * 6


def fill(levels: list[float], folder: str = "history") -> None:
    for one in history(levels, noise=0.01, seed=2):
        store(Path(folder), one)


def test_a_study_is_added_once_and_shown(hpctrain: Hpctrain) -> None:
    first, second = hpctrain("track", "add", str(STUDY)), hpctrain("track", "add", str(STUDY))
    assert (first.returncode, second.returncode) == (0, 0)
    path = first.stdout.strip()
    assert path.startswith("history/local/digits-strong/2026-11-21T204554Z-")
    assert second.stdout.strip() == path
    assert second.stderr == "hpctrain: already stored\n"
    done = hpctrain("track", "show", "--check")
    assert done.returncode == 0
    assert "History of digits-strong on local" in done.stdout
    assert "check: not decided: all 2 sizes under mpirun: 1 value, a change needs 5" in done.stderr


def test_another_folder_is_named_by_option_or_variable(hpctrain: Hpctrain) -> None:
    hpctrain("track", "add", str(STUDY), "--history", "a", "--site", "marvin")
    hpctrain("track", "add", str(STUDY), HPCTRAIN_HISTORY="b")
    assert [path.name for path in Path("a").iterdir()] == ["marvin"]
    assert [path.name for path in Path("b").iterdir()] == ["local"]


def test_a_revision_of_a_study_is_told_when_it_is_added(hpctrain: Hpctrain) -> None:
    content = json.loads(hpctrain("report", str(STUDY), "-f", "json").stdout)
    first = hpctrain("track", "add", str(STUDY)).stdout.strip()
    content["rows"][0]["n_ok"] = 2
    Path("report.json").write_text(json.dumps(content))
    done = hpctrain("track", "add", "report.json")
    assert done.returncode == 0
    assert f"{first} has the same study and start" in done.stderr


@pytest.mark.parametrize(
    ("levels", "code"), [(STEP, 1), (STEP[:20], 0), ([*STEP, *[100.0] * 8], 0)]
)
def test_check_fails_if_the_newest_level_is_worse(
    hpctrain: Hpctrain, levels: list[float], code: int
) -> None:
    fill(levels)
    done = hpctrain("track", "show", "--check")
    assert done.returncode == code
    assert ("check: worse: 4 GPUs: speed 0.9" in done.stderr) is (code == 1)
    assert hpctrain("track", "show").returncode == 0


def test_an_entry_that_cannot_be_read_is_a_partial_result(hpctrain: Hpctrain) -> None:
    fill(STEP[:20])
    path = next(Path("history").rglob("2026-01-05*.json"))
    path.write_text("{\n<<<<<<< HEAD\n")
    done = hpctrain("track", "show", "--check")
    assert done.returncode == 3
    assert f"hpctrain: {path}:2: a conflict of git that is not resolved" in done.stderr
    assert "19 entries" in done.stdout


def test_a_history_without_any_readable_entry_is_refused(hpctrain: Hpctrain) -> None:
    fill([100.0])
    path = next(Path("history").rglob("*.json"))
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 9'))
    done = hpctrain("track", "show")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path}:2: written by a newer hpctrain (schema 9" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "history: there is no history"),
        (("--history", "empty"), "empty: the history is empty"),
        (("--history", "file"), "file: cannot be read: Not a directory"),
        (("--threshold", "1.5"), "--threshold 1.5: must be between 0 and 1"),
        (("-f", "pdff"), "unknown format 'pdff'"),
        (("-o", "page.doc"), "page.doc: give a format with -f"),
    ],
)
def test_bad_input_is_refused(hpctrain: Hpctrain, words: tuple[str, ...], message: str) -> None:
    Path("empty").mkdir()
    Path("file").touch()
    done = hpctrain("track", "show", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_page_and_tables_are_written(hpctrain: Hpctrain) -> None:
    fill(STEP)
    for name in ("page.html", "table.csv", "all.json", "all.md"):
        done = hpctrain("track", "show", "-o", name)
        assert done.stdout.splitlines()[0] == name
    assert "<svg" in Path("page.html").read_text()
    assert len(Path("table.csv").read_text().splitlines()) == 27
    assert json.loads(Path("all.json").read_text())["checks"]
    assert 'http-equiv="refresh"' not in Path("page.html").read_text()
