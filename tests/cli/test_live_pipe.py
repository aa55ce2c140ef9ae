"""`hpctrain collect -` beside a job that still runs: what a line states is printed at once."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.submissions.waiting import LIMIT_S

COLLECT = [sys.executable, "-m", "hpc_train", "collect", "-"]


STEP = '@hpct {"event": "step", "rank": 0, "step": %d, "samples_per_second": 100.0}\n'


@contextmanager
def collecting(*more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command behind a pipe that stays open; a failed test leaves no process."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*COLLECT, *more], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def printed(process: subprocess.Popen[bytes], lines: int) -> list[str]:
    """Return so many lines of output as soon as they are there."""
    assert process.stdout is not None
    found = b""
    while found.count(b"\n") < lines:
        assert select.select([process.stdout], [], [], LIMIT_S)[0], found
        part = os.read(process.stdout.fileno(), 1 << 16)
        assert part, found
        found += part
    return found.decode().splitlines()


@pytest.mark.process
def test_each_record_is_printed_before_the_next_line_comes() -> None:
    with collecting("--json") as process:
        for number in range(1, 6):
            assert process.stdin is not None
            process.stdin.write((STEP % number).encode())
            process.stdin.flush()
            (line,) = printed(process, 1)
            record = json.loads(line)
            assert (record["metric"], record["step"]) == ("samples_per_second", number)
        out, _ = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, out) == (0, b"")
