"""Every published study: its report is made anew from its records, and says the same."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.project.same_result import differences, plain, same_pixels

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted((ROOT / "results" / "studies").iterdir())
# Another version of matplotlib places texts and ticks elsewhere.
DRAWN_WITH = "3.11"
SAME_PICTURES = version("matplotlib").startswith(f"{DRAWN_WITH}.")
PROFILE = re.compile(r'"profile": ?"(?=/)')
PICTURE = re.compile(r"<svg.*?</svg>", re.DOTALL)


def test_there_are_two_of_slurm_and_two_of_this_machine() -> None:
    names = ["digits-nodes-lab", "digits-two-cores", "strategies-lab", "strategies-two-cores"]
    assert [study.name for study in STUDIES] == names


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
    for manifest in copy.glob("*/run.json"):
        # Who has a lab on this machine has a file where the profile of the runs was.
        manifest.write_text(PROFILE.sub(r"\g<0>/nowhere", manifest.read_text()))
    for name in ("report.md", "report.html"):
        done = subprocess.run(
            [sys.executable, "-m", "hpc_train", "report", str(copy), "-o", str(copy / name)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=copy.parent,
            capture_output=True,
            text=True,
            timeout=240,
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
        assert not differences((again / name).read_text(), (stored / name).read_text()), name


def test_the_words_of_the_page_follow_from_the_records(pair: tuple[Path, Path]) -> None:
    pages = [(study / "report.html").read_text() for study in pair]
    assert all(len(PICTURE.findall(page)) > 2 for page in pages)
    stored, again = (plain(PICTURE.sub("", page)) for page in pages)
    assert not differences(again, stored)


@pytest.mark.skipif(not SAME_PICTURES, reason=f"drawn with matplotlib {DRAWN_WITH}")
@pytest.mark.parametrize("ending", [".svg", ".html"])
def test_the_pictures_follow_from_the_records(pair: tuple[Path, Path], ending: str) -> None:
    stored, again = pair
    for name in names(stored, ending):
        assert not differences(
            plain((again / name).read_text()), plain((stored / name).read_text())
        )


@pytest.mark.skipif(not SAME_PICTURES, reason=f"drawn with matplotlib {DRAWN_WITH}")
def test_the_pixels_follow_from_the_records(pair: tuple[Path, Path]) -> None:
    stored, again = pair
    for name in names(stored, ".png"):
        assert same_pixels((again / name).read_bytes(), (stored / name).read_bytes()), name


def test_only_the_last_digit_may_differ() -> None:
    assert not differences(
        "1.09220922 of 15 runs [0.26, 3e-09]", "1.09220921 of 15 runs [0.26, 3e-09]"
    )
    assert not differences("0.0,1.42108547e-14", "1.42108547e-14,0.0")
    assert differences("1.09220922", "1.09220924")
    assert differences("14 of 15 runs", "15 of 15 runs")
    assert differences("all,1.5", "srun,1.5")
    assert differences("1.5", "1.5\n2.5")


def test_a_picture_with_another_mark_is_another() -> None:
    picture = next((ROOT / "results" / "studies").rglob("report.svg")).read_text()
    mark = re.search(r'<use xlink:href="#m[^>]* x="([\d.]+)"', picture)
    assert mark
    moved = picture.replace(mark[1], f"{float(mark[1]) + 0.01:.6f}", 1)
    assert differences(plain(moved), plain(picture))


def test_a_picture_with_other_pixels_is_another() -> None:
    stored = sorted((ROOT / "results" / "studies" / "digits-two-cores").glob("report*.png"))
    pictures = [path.read_bytes() for path in stored]
    assert all(same_pixels(one, one) for one in pictures)
    assert not any(same_pixels(one, other) for one, other in itertools.pairwise(pictures))
