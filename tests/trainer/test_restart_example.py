"""examples/restart, as docs/restart.md explains it: stopped in the middle, it loses nothing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.launching import environment

pytest.importorskip("torch")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "restart"
AGENT = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
EPOCHS, RANKS = 4, 1


def trained(folder: Path, program: str = "train.py", **extra: object) -> tuple[int, list[str]]:
    """Return the exit code of the agent and the lines of the epochs."""
    folder.mkdir(exist_ok=True)
    where = environment(
        HPCTRAIN_CHECKPOINTS=folder / "checkpoints", PYTHONPATH=EXAMPLES.parents[1], **extra
    )
    command = [sys.executable, *AGENT, str(RANKS), str(EXAMPLES / program), str(EPOCHS)]
    done = subprocess.run(
        command, cwd=folder, env=where, capture_output=True, text=True, timeout=400
    )
    return done.returncode, re.findall(r"^epoch \d+: loss \d\.\d{6}$", done.stdout, re.MULTILINE)


def test_the_example_continues_where_it_was_stopped(tmp_path: Path) -> None:
    code, whole = trained(tmp_path / "whole")
    assert (code, len(whole)) == (0, EPOCHS)
    stop = tmp_path / "stop"
    stop.touch()
    code, first = trained(tmp_path / "twice", HPCTRAIN_STOP_FILE=stop)
    assert (code, first) == (1, [])
    stop.unlink()
    code, rest = trained(tmp_path / "twice", HPCTRAIN_STOP_FILE=stop)
    assert (code, rest) == (0, whole)
    one, other = ((tmp_path / name / "model.pt").read_bytes() for name in ("whole", "twice"))
    assert one == other
