"""Logs that mean harm, or are only large: time and memory of reading them stay bounded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own: the peak of another test would count as this one's.
MEASURE = """
import json, sys, time
from pathlib import Path
from hpc_train.base.errors import LogParseError
from hpc_train.diagnosis.diagnosis import JobEnd
from hpc_train.logs.collect import collect
from hpc_train.diagnosis.diagnose import diagnose_logs
from hpc_train.nccl.transport import Tally
log, started = Path(sys.argv[1]), time.process_time()
try:
    records = sum(1 for _ in collect("r", [log]))
    diagnose_logs([log], ["log"], JobEnd(), Tally())
except LogParseError:
    records = -1
status = Path("/proc/self/status").read_text()
used = time.process_time() - started
print(json.dumps([records, used, int(status.split("VmHWM:")[1].split()[0])]))
"""
SIZE = 4_000_000
CHANNEL = b"n1:7:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA"
LINES = {
    "nothing": b"x",
    "brackets": b"[",
    "event": b'@hpct {"a":' + b"[" * 1000,
    "channels": CHANNEL,
    "errors": b"Traceback (most recent call last) RuntimeError: CUDA out of memory. Tried to ",
    "returns": b"step 1: loss 2\riter 5: loss 1.5, time 2ms\r",
    "nul": b"\0\0\0 NCCL INFO : Using ",
    "statements": b"NCCL INFO NET/IB : Using [0]mlx5:1/IB ",
    "mllog": b":::MLLOG {",
}


def measured(log: Path) -> tuple[int, float, int]:
    """Return the records, the seconds and the most memory [KiB] of collect and diagnose."""
    command = [sys.executable, "-c", MEASURE, str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    records, seconds, kib = json.loads(done.stdout)
    return records, seconds, kib


@pytest.mark.parametrize("kind", LINES)
def test_one_line_is_the_log(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    with log.open("wb") as file:
        for _ in range(SIZE // 1_000_000):
            file.write((LINES[kind] * (1_000_000 // len(LINES[kind]) + 1))[:1_000_000])
    _, seconds, kib = measured(log)
    assert kib < 200_000
    assert seconds < 30


def test_lines_of_nccl_that_are_all_different(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    with log.open("wb") as file:
        for number in range(60_000):
            file.write(b"n%d:%d:9 [0] NCCL INFO NCCL_X set to %d\n" % ((number,) * 3))
            file.write(b"n%d:%d:9" % (number, number) + CHANNEL[6:] + b"\n")
    _, seconds, kib = measured(log)
    assert kib < 200_000
    assert seconds < 30


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    log = tmp_path / "a.out"
    block = (b"noise of some length, with words\n" * 20 + b'@hpct {"step":1,"loss":2}\n') * 1500
    with log.open("wb") as file:
        for _ in range(30):
            file.write(block)
    count, _, kib = measured(log)
    assert count == 45_000
    assert kib < 200_000
