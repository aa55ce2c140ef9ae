"""Changes of variables, done by bash: each mode, in each scope, with whatever people write."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpc_train.plans.plan import EnvChange, LaunchPlan

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
DUMP = "import json, os; print('SEEN ' + json.dumps(dict(os.environ)))"


@pytest.fixture
def seen(plan: Plans, execute: Execute, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return the environment of rank 0 of a Slurm job with these changes."""

    def run(*changes: EnvChange, **outer: str) -> dict[str, str]:
        command = [sys.executable, "-c", DUMP]
        made = plan("slurm-generic", command=command, launcher="srun")
        made = msgspec.structs.replace(made, changes=changes)
        (tmp_path / "run").mkdir(exist_ok=True)
        done = execute(made, tmp_path / "run", **outer)
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / "run/logs/rank-0.out").read_text().splitlines()
        found: dict[str, str] = json.loads(lines[-1].removeprefix("SEEN "))
        return found

    return run


def change(value: str, **keys: Any) -> EnvChange:
    return EnvChange(name="X", value=value, **keys)


# How it is changed, what X is before (None: not set) and what the rank sees.
CASES = [
    (change("new"), "old", "new"),
    (change("new", mode="default"), None, "new"),
    (change("new", mode="default"), "", "new"),
    (change("new", mode="default"), "old", "old"),
    (change("new", mode="prepend"), "old", "new:old"),
    (change("new", mode="prepend"), None, "new"),
    (change("new", mode="prepend"), "", "new"),
    (change("new", mode="append"), "old", "old:new"),
    (change("new", mode="append"), None, "new"),
    (change("new", mode="append"), "", "new"),
]


@pytest.mark.parametrize("scope", ["job", "ranks"])
def test_each_mode_in_each_scope(seen: Callable[..., dict[str, str]], scope: Any) -> None:
    changes = [
        msgspec.structs.replace(how, scope=scope, name=f"X{number}")
        for number, (how, _, _) in enumerate(CASES)
    ]
    outer = {f"X{n}": before for n, (_, before, _) in enumerate(CASES) if before is not None}
    found = seen(*changes, **outer)
    assert [found.get(one.name) for one in changes] == [after for _, _, after in CASES]
