"""The lock: held while somebody works, gone when he dies, whatever the way."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.submissions.local_queue import is_held, take

HOLD = """\
import sys, time
from pathlib import Path
from hpc_train.submissions.local_queue import take
take(Path(sys.argv[1]), wait=True)
print("held", flush=True)
time.sleep(600)
"""


def test_a_lock_is_free_held_and_free_again(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path)
    descriptor = take(path, wait=False)
    assert descriptor is not None
    assert is_held(path)
    assert take(path, wait=False) is None
    os.close(descriptor)
    assert not is_held(path)


def test_the_kernel_drops_the_lock_of_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder.stdout:
        assert holder.stdout.readline() == b"held\n"
        assert is_held(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait(240)
    assert not is_held(path)


def test_of_a_lock_that_this_user_may_not_see_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch(mode=0o000)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        assert is_held(path) is None
    finally:
        if root:
            os.seteuid(0)
    assert is_held(tmp_path / "none") is False


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic link"):
        take(tmp_path / "link", wait=False)
    assert not (tmp_path / "victim").exists()


def test_two_processes_that_query_a_lock_at_once_do_not_hold_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert is_held(path) is False
