"""The formulas of traffic hold on the wire: two ranks of gloo in a network namespace."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
APART = ("unshare", "--user", "--map-root-user", "--net")
UP = 'ip link set lo up && exec "$@"'


def _can_be_apart() -> bool:
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    done = subprocess.run([*APART, "ip", "link", "set", "lo", "up"], check=False)
    return done.returncode == 0


@pytest.mark.skipif(not _can_be_apart(), reason="no network namespaces here")
def test_a_step_sends_what_the_formula_says() -> None:
    strategies = ("ddp", "zero1", "fsdp", "tensor", "context", "pipeline")
    command = [sys.executable, "-m", "tests.workload.wire_bytes", *strategies]
    done = subprocess.run(
        [*APART, "sh", "-c", UP, "sh", *command],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    ratios = {name: sent / formula for name, (sent, formula) in json.loads(done.stdout).items()}
    assert ratios.keys() == set(strategies)
    assert ratios == pytest.approx(dict.fromkeys(strategies, 1.0), abs=0.02)
