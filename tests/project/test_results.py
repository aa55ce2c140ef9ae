"""Every published study: its report is made anew from its records, and says the same.

Sums, logarithms and matrices differ in the last bits from processor to processor: of the digits
that a report writes, only the last can change by that.
"""

import os
import re
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from tests.command_line import run_command

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted((ROOT / "results" / "studies").iterdir())
PARAMS = [
    pytest.param(path, marks=pytest.mark.long if path.name == "strategies-two-cores" else ())
    for path in STUDIES
]
PROFILE = re.compile(r'"profile": ?"(?=/)')

# Numbers, but not those in a name, a colour or an address (1-0a24032a-r3, #4c47f5, v2.1.0).
_NUMBER = re.compile(r"(?<![\w.#-])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)", re.ASCII)
# What is left of a difference of equal numbers near 1 or 100.
_NOTHING = Decimal("1e-11")

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
    words = ("report", str(copy), "-o", str(copy / "report.md"))
    done = run_command(words, dict(os.environ), copy.parent)
    assert done.returncode == 0, done.stderr
    if os.environ.get("HPCTRAIN_WRITE_GOLDEN") == "1":
        for path in stored.glob("report*"):
            path.unlink()
        for path in (*copy.glob("report*.md"), *copy.glob("report*.svg")):
            shutil.copy(path, stored)
    return stored, copy


@pytest.mark.parametrize("ending", [".md", ".svg"])
def test_the_stored_files_are_those_of_a_report(pair: tuple[Path, Path], ending: str) -> None:
    first, second = (sorted(path.name for path in one.glob(f"report*{ending}")) for one in pair)
    assert first == second != []


def test_the_numbers_follow_from_the_records(pair: tuple[Path, Path]) -> None:
    stored, again = ((study / "report.md").read_text() for study in pair)
    assert not differences(again, stored)


def differences(one: str, other: str) -> list[str]:
    """Return what differs in two texts: their words, or numbers by more than the last digit.

    Whole numbers are counts, and equal.
    """
    words = [_NUMBER.sub("#", text) for text in (one, other)]
    if words[0] != words[1]:
        pairs = zip(*(text.splitlines() for text in words), strict=False)
        return next(([f"{a} | {b}"] for a, b in pairs if a != b), ["one text is longer"])
    pairs = zip(*(_NUMBER.findall(text) for text in (one, other)), strict=True)
    return [f"{a} | {b}" for a, b in pairs if not _same(a, b)]


def _same(one: str, other: str) -> bool:
    first, second = Decimal(one), Decimal(other)
    last = min(_place(first), _place(second))
    if last >= 0:
        return first == second
    return abs(first - second) <= max(Decimal(1).scaleb(last), _NOTHING)


def _place(number: Decimal) -> int:
    """Return the power of ten of the last digit."""
    place = number.as_tuple().exponent
    assert isinstance(place, int)
    return place
