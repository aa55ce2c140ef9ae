import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.trainer import emit as module


@pytest.mark.process
@pytest.mark.parametrize("flags", [[], ["-u"]])
def test_one_event_is_one_write(flags: list[str]) -> None:
    # A datagram socket keeps writes apart, so each message received is one write.
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    code = (
        "from hpc_train.trainer.emit import emit; print('before'); emit(step=1, text='x' * 20000)"
    )
    with ours, theirs:
        subprocess.run(
            [sys.executable, *flags, "-c", code], stdout=theirs.fileno(), check=True, timeout=240
        )
        ours.setblocking(False)
        writes = []
        while True:
            try:
                writes.append(ours.recv(1 << 16))
            except BlockingIOError:
                break
    assert b"".join(writes[:-1]) == b"before\n"
    assert writes[-1].startswith(b'@hpct {"v":1,') and writes[-1].endswith(b"}\n")


@pytest.mark.process
def test_runs_alone(tmp_path: Path) -> None:
    copy = tmp_path / "emit.py"
    copy.write_bytes(Path(module.__file__).read_bytes())
    code = "import sys; before = set(sys.modules); import emit; emit.emit(step=1); "
    code += "assert {m.split('.')[0] for m in sys.modules} - sys.stdlib_module_names <= "
    code += "{m.split('.')[0] for m in before} | {'emit'}"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "RANK": "2"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=240,
    )
    assert (run.stdout, run.stderr) == (b'@hpct {"v":1,"rank":2,"step":1}\n', b"")


@pytest.mark.process
def test_a_line_without_space_on_the_disk_is_lost_and_the_program_goes_on() -> None:
    code = """import sys; from hpc_train.trainer.emit import emit
emit(event="step")
print("on", file=sys.stderr)"""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "on\n")
