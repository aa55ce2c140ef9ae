"""What is kept of a run's logs: when it is written, and what it costs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

EVENT = b'@hpct {"step":%d,"step_time":0.5}\n'
# In a process of its own: the peak of another test would count as this one's.
MEASURE = """
import sys
from pathlib import Path
from hpc_train.pipeline.collect import collection
from hpc_train.model.log_selection import Search
print(sum(1 for _ in collection(["job"], Search(root=Path("results")))))
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.fixture
def log(hpctrain: Hpctrain) -> Path:
    """Return the log of a finished run."""
    Path("job.yaml").write_text("{name: job, command: ['true'], launcher: single}\n")
    done = hpctrain("submit", "job.yaml", "--wait")
    assert done.returncode == 0, done.stderr
    (found,) = Path("results").rglob("rank-0.out")
    return found


def lines(log: Path) -> int:
    return (log.parents[1] / "records.jsonl").read_bytes().count(b"\n")


@pytest.mark.process
def test_kept_is_what_the_logs_held_last(hpctrain: Hpctrain, log: Path) -> None:
    log.write_bytes(EVENT % 1 + b'@hpct {"step":\n')
    first = hpctrain("collect", "job", "--json")
    assert first.stderr.count("cut, written over") == 1
    kept = log.parents[1] / "records.jsonl"
    assert kept.read_text() == first.stdout
    written = kept.stat().st_mtime_ns
    assert hpctrain("collect", "job", "--json").stdout == first.stdout
    assert kept.stat().st_mtime_ns == written
    index = log.parents[1] / "logs.index"
    moment = index.stat().st_mtime_ns - 2_000_000_000
    for path, time in ((kept, moment), (index, moment)):
        os.utime(path, ns=(time, time))
    hpctrain("collect", "job", "--json")
    assert kept.stat().st_mtime_ns == moment, "of one moment, nothing is older"
    os.utime(kept, ns=(moment - 1, moment - 1))
    hpctrain("collect", "job", "--json")
    assert kept.stat().st_mtime_ns > moment
    with log.open("ab") as file:
        file.write(EVENT % 2)
    grown = hpctrain("collect", "job", "--json").stdout
    assert grown.count("\n") == 2
    assert kept.read_text() == grown
    shutil.rmtree(log.parent)
    assert hpctrain("collect", "job", "--json").stdout == grown


@pytest.mark.process
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('{"schema":9,', "written by a newer hpctrain (schema 9, this one reads 1)"),
        ('{"colour":1,', "written by a newer hpctrain (schema with 'colour', this one reads 1)"),
        ("{,", "damaged: "),
    ],
)
def test_kept_by_a_newer_hpctrain_or_damaged(
    hpctrain: Hpctrain, log: Path, change: str, said: str
) -> None:
    log.write_bytes(EVENT % 1)
    hpctrain("collect", "job", "--json")
    kept = log.parents[1] / "records.jsonl"
    kept.write_text(kept.read_text().replace("{", change, 1))
    shutil.rmtree(log.parent)
    done = hpctrain("report", "job")
    assert done.returncode == 2
    assert f"{kept}:1: {said}" in done.stderr


@pytest.mark.process
def test_memory_does_not_grow_with_the_records_of_a_run(log: Path) -> None:
    log.write_bytes(b"".join(EVENT % step for step in range(1, 60_001)))
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        count, kib = map(int, done.stdout.split())
        assert count == 60_000
        assert kib < 120_000
    assert lines(log) == 60_000
