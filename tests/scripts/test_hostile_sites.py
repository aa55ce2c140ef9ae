"""Whatever a job and a profile hold arrives unchanged, also below srun and in images."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from hpc_train.base.decode import decode
from hpc_train.base.errors import SiteProfileError, SpecError
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.sites.profile import SiteProfile
from tests.scripts.stubs import NOTE, calls, install
from tests.scripts.test_hostile import DUMP, HOSTILE, TEXT

Execute = Callable[..., subprocess.CompletedProcess[str]]
MODES = ("set", "default", "prepend", "append")
WORDS = ["a$(touch${IFS}pwned)", "b;touch${IFS}pwned", "c'd\"", "e`touch${IFS}pwned`", "f*", "g\\"]


def plan_of(site: dict[str, Any], **keys: Any) -> LaunchPlan:
    launchers = {"default": "srun", "allowed": ["srun", "torchrun", "single"]}
    basis = {"schema": 1, "name": "big", "description": "d", "scheduler": "slurm"}
    profile = {**basis, "launchers": {**launchers, **site.pop("launchers", {})}, **site}
    data = {"name": "demo", "resources": {"cpus_per_task": 1}, **keys}
    job = decode(data, JobSpec, {"": "job.yaml"}, SpecError)
    return make_plan(job, decode(profile, SiteProfile, {"": "big.yaml"}, SiteProfileError))


def blocks(values: list[str]) -> list[dict[str, Any]]:
    """Return a block for each mode; what is prepended to has a value already."""
    return [
        {"mode": mode, "env": {f"{mode}_{i}": value}}
        for mode in MODES
        for i, value in enumerate(values)
    ]


def expected(values: list[str]) -> dict[str, str]:
    return {name: text for block in blocks(values) for name, text in block["env"].items()}


def seen(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("seen-*.json"))]


def fine(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(autouse=True)
def unharmed(tmp_path: Path) -> Iterator[None]:
    yield
    assert not list(tmp_path.rglob("pwned"))


def notes(folder: Path) -> dict[str, str]:
    (folder / "notes").mkdir(exist_ok=True)
    return {"NOTES": str(folder / "notes")}


@pytest.fixture
def dump(execute: Execute, tmp_path: Path) -> list[str]:
    """Return a program that writes down what it was given."""
    install(tmp_path / "bin")
    (tmp_path / "dump.py").write_text(DUMP)
    # Not Python itself, whose torch would be asked for an agent.
    return ["env", sys.executable, str(tmp_path / "dump.py")]


@pytest.mark.process
@pytest.mark.parametrize("launcher", ["srun", "torchrun", "single"])
@pytest.mark.parametrize("runtime", [None, "apptainer", "podman-hpc"])
def test_below_each_starter(
    execute: Execute, dump: list[str], tmp_path: Path, launcher: str, runtime: str | None
) -> None:
    folder = tmp_path / "a $(touch pwned) 'b' \"c\" größe"
    folder.mkdir()
    image = folder / "i$(touch pwned) 'm.img"
    image.touch()
    secret = folder / "it's $HOME\n#SBATCH"
    secret.write_text("t $0")
    secret.chmod(0o600)
    box = {"image": str(image)} if runtime else None
    words = [f"--x={text}" for text in HOSTILE]
    plan = plan_of(
        {
            "rendezvous": {"suffix": "\nWRAPPER\ntouch pwned\n'$(touch pwned)"},
            "launchers": {"srun_args": words},
            "containers": {"runtime": runtime or "apptainer", "args": words},
            "env_blocks": blocks(HOSTILE),
            "torch": "2.9",
        },
        launcher=launcher,
        launcher_args=words if launcher != "single" else [],
        command=[*dump, *HOSTILE],
        container=box,
        secrets={"HF_TOKEN": str(secret)},
        env={f"V{i}": value for i, value in enumerate(HOSTILE)},
        workdir=str(folder),
    )
    fine(execute(plan, tmp_path, **notes(tmp_path)))
    (one,) = seen(tmp_path)
    assert (one["argv"], one["cwd"]) == (HOSTILE, str(folder))
    wanted = {**expected(HOSTILE), "HF_TOKEN": "t $0", "HPCTRAIN_BACKEND": "gloo"}
    wanted |= {f"V{i}": value for i, value in enumerate(HOSTILE)}
    assert one["env"].items() >= wanted.items()
    assert one["env"]["MASTER_ADDR"] == "localhost\nWRAPPER\ntouch pwned\n'$(touch pwned)"
    for program in ("srun", runtime) if runtime else ("srun",):
        if (program, launcher) != ("srun", "single"):
            assert set(words) <= set(next(calls(tmp_path / "notes", str(program)))), program


def test_an_elastic_agent_is_put_together_on_its_node(
    execute: Execute, dump: list[str], tmp_path: Path
) -> None:
    suffix = "\nWRAPPER\ntouch pwned\n$(touch pwned)"
    plan = plan_of(
        {"rendezvous": {"suffix": suffix}},
        launcher="torchrun",
        launcher_args=["--y", suffix],
        command=dump,
        resources={"nodes": 2, "cpus_per_task": 1},
        elastic={"max_restarts": 1},
    )
    (tmp_path / "bin" / "torchrun").write_text(NOTE)
    execute(plan, tmp_path, **notes(tmp_path))
    told = [
        words[words.index("--local-addr") + 1] for words in calls(tmp_path / "notes", "torchrun")
    ]
    assert sorted(told) == [f"node0{suffix}", f"node1{suffix}"]
    for words in calls(tmp_path / "notes", "torchrun"):
        assert words[words.index("--y") + 1] == suffix


def test_modules(execute: Execute, dump: list[str], tmp_path: Path) -> None:
    module = tmp_path / "bin" / "module"
    module.write_text('#!/bin/bash\nprintf "%s\\n" "$@" >>"$NOTES/modules"\n')
    module.chmod(0o755)
    plan = plan_of({"modules": WORDS[:3]}, modules=WORDS[3:], command=dump)
    fine(execute(plan, tmp_path, **notes(tmp_path)))
    told = (tmp_path / "notes" / "modules").read_text().splitlines()
    assert told == ["load", *WORDS]


@pytest.mark.process
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(TEXT, min_size=1, max_size=3), suffix=TEXT)
def test_any_text(
    execute: Execute, dump: list[str], tmp_path: Path, values: list[str], suffix: str
) -> None:
    plan = plan_of(
        {"env_blocks": blocks(values), "rendezvous": {"suffix": suffix}},
        command=[*dump, *values],
        launcher_args=[f"--x={suffix}"],
        env={"V": suffix},
    )
    fine(execute(plan, tmp_path, **notes(tmp_path)))
    one = seen(tmp_path)[0]
    assert one["argv"] == values
    wanted = {**expected(values), "V": suffix, "MASTER_ADDR": f"localhost{suffix}"}
    assert one["env"].items() >= wanted.items()
