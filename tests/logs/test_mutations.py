"""Cut, shuffled, doubled and foreign text: no parser ever raises, or finds more than there is."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hpc_train.base import registry
from hpc_train.base.metrics import UNITS
from hpc_train.logs.formats.formats import maker
from hpc_train.logs.read_log import ParseStats
from tests.logs.parse_text import parse

NAMES = tuple(registry.BUILT_IN["parsers"])
LOGS = Path(__file__).resolve().parents[1] / "log_files"
# By hand: HPCTRAIN_FUZZ=20000 python -m pytest tests/logs/test_mutations.py
EXAMPLES = int(os.environ.get("HPCTRAIN_FUZZ", "25"))
MUTATED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="HPCTRAIN_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
SEPARATORS = st.sampled_from([b"\n", b"\n", b"\n", b"\r", b"\r\n", b"", b" ", b"\n\n"])
PREFIXES = st.sampled_from([b"", b"", b"3: ", b"[rank1]: ", b"[1,2]<stdout>:", b"\x1b[31m"])
WORDS = [
    b"nan",
    b"inf",
    b"-",
    b"1e999",
    b"9" * 400,
    b"N/A",
    b"\x00",
    b"\xff\xfe",
    b"|",
    b": ",
    b"[",
]


def files() -> dict[str, list[Path]]:
    """Return the files of `tests/log_files` in which each parser finds something."""
    found: dict[str, list[Path]] = {}
    for path in sorted(LOGS.glob("*/*")):
        census = ParseStats()
        parse(path.read_bytes(), census=census)
        for name in census.known:
            found.setdefault(name, []).append(path)
    return found


FILES = files()


def lines_of(name: str) -> list[bytes]:
    """Return lines of one format: of its sample, and of the files that were written for it."""
    found = maker(name)().sample.encode().splitlines()
    for path in FILES.get(name, []):
        found += path.read_bytes().splitlines()[:400]
    return found


@st.composite
def mutated(draw: st.DrawFn, lines: list[bytes]) -> bytes:
    """Draw a log made of damaged lines of a real one."""
    parts = []
    for _ in range(draw(st.integers(1, 12))):
        line = draw(st.sampled_from(lines))
        kind = draw(st.integers(0, 5))
        at = draw(st.integers(0, len(line)))
        if kind == 1:
            line = line[:at]
        elif kind == 2:
            line = line[at:]
        elif kind == 3:
            line = line[:at] + draw(st.sampled_from(WORDS)) + line[at:]
        elif kind == 4:
            line = line[:at] + draw(st.binary(max_size=6)) + line[at + 1 :]
        elif kind == 5:
            line = line[:at] + draw(st.sampled_from(lines)) + line[at:]
        parts.append(draw(PREFIXES) + line + draw(SEPARATORS))
    return b"".join(parts)


@pytest.mark.parametrize("name", NAMES)
@given(chance=st.data())
@MUTATED
def test_damaged_logs_never_crash_a_parser(name: str, chance: st.DataObject) -> None:
    text = chance.draw(mutated(lines_of(name)))
    census = ParseStats()
    hits = parse(text, name, census=census)
    lines = text.count(b"\n") + text.count(b"\r") + 1
    assert sum(seen.lines for seen in census.known.values()) <= lines
    for number, hit, _ in hits:
        assert 1 <= number <= lines
        assert hit.unit or hit.metric in UNITS
        assert abs(hit.value) < float("inf")
