"""Whatever people write reaches the program unchanged: bash runs the rendered script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script

HOSTILE = [
    "a b",
    "it's",
    'say "hi"',
    "$(touch pwned)",
    "`touch pwned`",
    "$HOME",
    "a\nb",
    "; touch pwned",
    "a && b | c > pwned",
    "größe 数据",
    "\\",
    "*",
    "{a,b}",
    "~",
    "-n",
    "",
    "x\n#SBATCH --qos=high",
    "WRAPPER\ntouch pwned",
    "{{ 7 * 7 }}{% raw %}",
    "%s%n",
    "!!",
]
DUMP = """\
import json, os, sys
seen = {"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}
name = "seen-" + os.environ.get("RANK", "node") + ".json"
with open(os.path.join(os.environ["HPCTRAIN_RUN"], name), "w") as stream:
    json.dump(seen, stream)
"""
Plans = Callable[..., LaunchPlan]


def run(plan: LaunchPlan, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "job.sbatch"
    script.write_text(render_script(plan).text)
    environment = {**os.environ, "HPCTRAIN_RUN": str(folder)}
    return subprocess.run(
        ["bash", str(script)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )


def program(folder: Path, arguments: Sequence[str]) -> list[str]:
    (folder / "dump.py").write_text(DUMP)
    return [sys.executable, str(folder / "dump.py"), *arguments]


@pytest.mark.parametrize(
    ("launcher", "tasks"),
    [
        ("single", 1),
        ("spawn", 2),
        pytest.param("mpirun", 2, marks=pytest.mark.mpi),
        pytest.param("torchrun", 2, marks=[pytest.mark.torch, pytest.mark.process]),
    ],
)
def test_under_each_launcher(plan: Plans, tmp_path: Path, launcher: str, tasks: int) -> None:
    if launcher == "torchrun":
        pytest.importorskip("torch")
    folder = tmp_path / "a $(touch pwned) 'b' \"c\" größe"
    folder.mkdir()
    made = plan(
        command=program(folder, HOSTILE),
        launcher=launcher,
        env={f"V{i}": value for i, value in enumerate(HOSTILE)},
        workdir=str(folder),
        resources={"tasks_per_node": tasks, "cpus_per_task": 1},
    )
    done = run(made, folder)
    assert done.returncode == 0, done.stderr
    seen = [json.loads(path.read_text()) for path in sorted(folder.glob("seen-*.json"))]
    assert len(seen) == (1 if launcher in ("single", "spawn") else tasks)
    for one in seen:
        assert one["argv"] == HOSTILE
        assert [one["env"][f"V{i}"] for i in range(len(HOSTILE))] == HOSTILE
        assert one["cwd"] == str(folder)
    assert not list(tmp_path.rglob("pwned"))


TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=40)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(arguments=st.lists(TEXT, max_size=4), value=TEXT)
def test_any_text(plan: Plans, tmp_path: Path, arguments: list[str], value: str) -> None:
    made = plan(
        command=program(tmp_path, arguments),
        launcher="single",
        env={"V": value},
        resources={"cpus_per_task": 1},
    )
    done = run(made, tmp_path)
    assert done.returncode == 0, done.stderr
    seen = json.loads((tmp_path / "seen-0.json").read_text())
    assert seen["argv"] == arguments
    assert seen["env"]["V"] == value
