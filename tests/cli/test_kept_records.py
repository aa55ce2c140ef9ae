"""What is kept of a run's logs: when it is written, and what it costs."""

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

EVENT = b'@hpct {"step":%d,"step_time":0.5}\n'


@pytest.fixture
def log(hpctrain: Hpctrain) -> Path:
    """Return the log of a finished run."""
    Path("job.yaml").write_text("{name: job, command: ['true'], launcher: single}\n")
    done = hpctrain("submit", "job.yaml", "--wait")
    assert done.returncode == 0, done.stderr
    (found,) = Path("results").rglob("rank-0.out")
    return found


@pytest.mark.process
def test_kept_is_what_the_logs_held_last(hpctrain: Hpctrain, log: Path) -> None:
    log.write_bytes(EVENT % 1 + b'@hpct {"step":\n')
    first = hpctrain("collect", "job", "--json")
    assert first.stderr.count("truncated, overwritten") == 1
    kept = log.parents[1] / "records.jsonl"
    assert kept.read_text() == first.stdout
    written = kept.stat().st_mtime_ns
    assert hpctrain("collect", "job", "--json").stdout == first.stdout
    assert kept.stat().st_mtime_ns == written
    with log.open("ab") as file:
        file.write(EVENT % 2)
    grown = hpctrain("collect", "job", "--json").stdout
    assert grown.count("\n") == 2
    assert kept.read_text() == grown
    shutil.rmtree(log.parent)
    assert hpctrain("collect", "job", "--json").stdout == grown
