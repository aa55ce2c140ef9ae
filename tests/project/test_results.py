"""Every published study: its report is made anew from its records, and is the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted((ROOT / "results" / "studies").iterdir())
# Pictures are the same bytes only from the version of matplotlib that drew the stored ones.
DRAWN_WITH = "3.11"
SAME_PICTURES = version("matplotlib").startswith(f"{DRAWN_WITH}.")
PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)


def test_there_are_one_of_this_machine_and_one_of_slurm() -> None:
    assert [study.name for study in STUDIES] == ["digits-nodes-lab", "digits-two-cores"]


@pytest.fixture(scope="module", params=STUDIES, ids=lambda path: path.name)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Return a stored study, and a copy of it whose reports are made anew.

    With HPCTRAIN_WRITE_GOLDEN=1 the stored reports are written anew; read the diff.
    """
    stored: Path = request.param
    copy = tmp_path_factory.mktemp("again") / stored.name
    shutil.copytree(stored, copy, ignore=shutil.ignore_patterns("report*"))
    for name in ("report.md", "report.html"):
        done = subprocess.run(
            [sys.executable, "-m", "hpc_train", "report", str(copy), "-o", str(copy / name)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=copy.parent,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    if os.environ.get("HPCTRAIN_WRITE_GOLDEN") == "1":
        for path in stored.glob("report*"):
            path.unlink()
        for path in copy.glob("report*"):
            shutil.copy(path, stored)
    return stored, copy


def names(study: Path, ending: str) -> list[str]:
    return sorted(path.name for path in study.glob(f"report*{ending}"))


def test_the_files_are_those_that_a_report_has(pair: tuple[Path, Path]) -> None:
    stored, again = pair
    assert names(again, "") == names(stored, "")


@pytest.mark.parametrize("ending", [".md", ".csv"])
def test_the_numbers_follow_from_the_records(pair: tuple[Path, Path], ending: str) -> None:
    stored, again = pair
    assert names(stored, ending)
    for name in names(stored, ending):
        assert (again / name).read_text() == (stored / name).read_text(), name


def test_the_words_of_the_page_follow_from_the_records(pair: tuple[Path, Path]) -> None:
    pages = [(study / "report.html").read_text() for study in pair]
    assert all(len(PICTURE.findall(page)) > 2 for page in pages)
    stored, again = (PICTURE.sub("", page) for page in pages)
    assert again == stored


@pytest.mark.skipif(not SAME_PICTURES, reason=f"drawn with matplotlib {DRAWN_WITH}")
@pytest.mark.parametrize("ending", [".svg", ".png", ".html"])
def test_the_pictures_follow_from_the_records(pair: tuple[Path, Path], ending: str) -> None:
    stored, again = pair
    for name in names(stored, ending):
        assert (again / name).read_bytes() == (stored / name).read_bytes(), name
