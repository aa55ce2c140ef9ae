"""Every published study: its report is made anew from its records, and says the same."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.command_line import run_command
from tests.project.same_result import differences, plain

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted((ROOT / "results" / "studies").iterdir())
PARAMS = [
    pytest.param(path, marks=pytest.mark.long if path.name == "strategies-two-cores" else ())
    for path in STUDIES
]
PROFILE = re.compile(r'"profile": ?"(?=/)')
PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)


# What they draw takes as long as a process.
pytestmark = pytest.mark.process


@pytest.fixture(scope="module", params=PARAMS, ids=lambda path: path.name)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Return a stored study, and a copy of it whose reports are made anew.

    With HPCTRAIN_WRITE_GOLDEN=1 the stored reports are written anew; read the diff.
    """
    stored: Path = request.param
    copy = tmp_path_factory.mktemp("again") / stored.name
    shutil.copytree(stored, copy, ignore=shutil.ignore_patterns("report*"))
    for manifest in copy.glob("*/run.json"):
        # Who has a lab on this machine has a file where the profile of the runs was.
        manifest.write_text(PROFILE.sub(r"\g<0>/nowhere", manifest.read_text()))
    for name in ("report.md", "report.html"):
        words = ("report", str(copy), "-o", str(copy / name))
        done = run_command(words, dict(os.environ), copy.parent)
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
        assert not differences((again / name).read_text(), (stored / name).read_text()), name


def test_the_words_of_the_page_follow_from_the_records(pair: tuple[Path, Path]) -> None:
    pages = [(study / "report.html").read_text() for study in pair]
    assert all(len(PICTURE.findall(page)) > 2 for page in pages)
    stored, again = (plain(PICTURE.sub("", page)) for page in pages)
    assert not differences(again, stored)
