"""The lock of a results folder: one holder at a time, and the next when it lets go."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from hpc_train.runs.json_files import exclusive

ADD = """\
import sys
from pathlib import Path
from hpc_train.runs.json_files import exclusive
counter = Path(sys.argv[1])
print("here", flush=True)
for _ in range(300):
    with exclusive(counter.with_name("lock")):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


def is_free(path: Path, kind: int) -> bool:
    """Whether somebody else gets a lock of this kind at once."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_nobody_else_has_the_lock_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "new" / ".submit.lock"
    with exclusive(path):
        assert not is_free(path, fcntl.LOCK_EX)
        assert not is_free(path, fcntl.LOCK_SH)
    assert is_free(path, fcntl.LOCK_EX)


def test_two_who_count_in_one_file_lose_nothing(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", ADD, str(counter)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    for one in both:
        one.communicate(timeout=240)
    assert counter.read_text() == "600"
