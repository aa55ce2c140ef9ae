"""The formulas of traffic and memory hold: two ranks of gloo in a network namespace."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch")
APART = ("unshare", "--user", "--map-root-user", "--net")
UP = 'ip link set lo up && exec "$@"'


def _can_be_apart() -> bool:
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    done = subprocess.run([*APART, "ip", "link", "set", "lo", "up"], check=False)
    return done.returncode == 0


@pytest.mark.skipif(not _can_be_apart(), reason="no network namespaces here")
def test_a_step_sends_and_keeps_what_the_formulas_say() -> None:
    strategies = ("ddp", "zero1", "fsdp", "tensor", "context", "pipeline")
    command = [sys.executable, "-m", "tests.workload.wire_bytes", *strategies]
    done = subprocess.run(
        [*APART, "sh", "-c", UP, "sh", *command],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found.keys() == set(strategies)
    sent = {name: sent / formula for name, (sent, formula, _, _) in found.items()}
    assert sent == pytest.approx(dict.fromkeys(strategies, 1.0), abs=0.02)
    # A stage of a pipeline also has the buffers in which it receives: 3 % here.
    kept = {name: kept / formula for name, (_, _, kept, formula) in found.items()}
    assert kept == pytest.approx(dict.fromkeys(strategies, 1.0), abs=0.04)
