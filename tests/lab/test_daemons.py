"""Processes are known by their start time, and ended with patience."""

import subprocess

import msgspec

from hpc_train.lab.daemons import Daemon, boot_id, end, is_alive, start_time
from tests.submissions.waiting import wait_for


def test_a_process_is_more_than_its_id() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        started = start_time(process.pid)
        assert started is not None
        assert is_alive(Daemon(name="sleep", pid=process.pid, started=started))
        assert not is_alive(Daemon(name="sleep", pid=process.pid, started=started - 1))
        # The ticks count from the boot: another boot's process may have had the same ones.
        known = Daemon(name="sleep", pid=process.pid, started=started, boot=boot_id())
        assert is_alive(known)
        assert not is_alive(msgspec.structs.replace(known, boot="of an earlier boot"))
        process.kill()
        # A zombie until somebody waits for it; for us it has ended.
        wait_for(lambda: start_time(process.pid) is None)


def test_who_does_not_listen_is_killed() -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        def alive() -> set[int]:
            return {process.pid} if start_time(process.pid) is not None else set()

        assert end(alive, grace_s=0.2)
        assert process.wait() == -9
