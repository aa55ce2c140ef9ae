"""Whatever people write reaches the program unchanged: bash runs the rendered script."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from hpc_train.base.errors import (
    PlanError,
    RenderError,
    SiteProfileError,
    SpecError,
    UnknownNameError,
)
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from tests.jobs.read_files import load_job
from tests.scripts.job_starts import save

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
    save(render_script(plan), script)
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


# The last one: of launchers and partitions.
REFUSALS = (SpecError, SiteProfileError, PlanError, RenderError, UnknownNameError)
SITE: dict[str, Any] = {
    "schema": 1,
    "name": "big",
    "description": "d",
    "scheduler": "slurm",
    "launchers": {"default": "srun", "allowed": ["srun", "torchrun"], "srun_args": ["-v"]},
    "containers": {"runtime": "pyxis", "args": ["--x"], "mounts": ["/a"], "setup": [":"]},
    "partitions": [{"name": "p", "default": True, "gpu_type": "a100", "cpu_bind": "cores"}],
    "rendezvous": {"host": "first-host", "suffix": "i"},
    "network": {
        "fabric": "infiniband",
        "interfaces": ["ib0"],
        "hcas": ["mlx5_0"],
        "plugin": "x",
        "script": "/a",
    },
    "directives": {"licenses": "fs:1", "requeue": True},
    "env": {"S": "v"},
    "env_why": {"S": "w"},
    "env_blocks": [
        {"env": {"A": "v"}, "why": "w", "source": "s"},
        {"env": {"B": "v"}, "mode": "append"},
        {"env": {"D": "v"}, "already_set_by": "m"},
    ],
    "modules": ["cuda"],
    "setup": [":"],
    "preflight": {"interfaces": ["ib0"], "hcas": ["mlx5_0"], "space": {"/var/scratch": "1M"}},
}
JOB: dict[str, Any] = {
    "name": "demo",
    "command": ["python", "train.py"],
    "launcher": "torchrun",
    "launcher_args": ["-x"],
    "container": {"image": "i", "mounts": ["/b:/c"], "workdir": "/w", "env": ["K"]},
    "resources": {"nodes": 2, "gpus_per_node": 1, "cpus_per_task": 1},
    "account": "a",
    "partition": "p",
    "qos": "q",
    "constraint": "c",
    "directives": {"reservation": "maint", "switches": "1@10"},
    "env": {"V": "v"},
    "modules": ["gcc"],
    "comment": "c",
    "secrets": {"T": "/t"},
    "setup": [":"],
    "workdir": "/w",
}
# Code by design: who writes a line of shell may write another one, or anything else.
_NAMED = ("env", "env_why", "secrets", "space", "directives")
CODE = {"setup.0", "containers.setup.0"}
REFUSED = [
    "x\n#SBATCH --qos=high",
    "x\r#SBATCH --qos=high",
    "$(touch pwned)",
    "x --qos=high",
    "x\n",
    "\n#SBATCH --qos=high\n",
    "WRAPPER\nCHECKS\n#SBATCH --qos=high",
    "'\n#SBATCH --qos=high\n'",
    "\u2028#SBATCH --qos=high",
    "x\x0b#SBATCH --qos=high",
    "{{ 7 * 7 }}",
    "",
]
# Words, names and paths: none of the above is one.
NEVER = {
    "job": {
        *("name", "launcher", "account", "partition", "qos", "constraint", "modules.0"),
        *("env.V!", "secrets.T", "secrets.T!", "directives.reservation"),
        *("directives.switches", "directives.reservation!", "directives.switches!"),
        *("container.mounts.0", "container.workdir", "container.env.0"),
    },
    "site": {
        *("name", "scheduler", "modules.0", "rendezvous.host", "partitions.0.name"),
        *("launchers.default", "launchers.allowed.0", "launchers.allowed.1"),
        *("containers.runtime", "containers.mounts.0"),
        *("partitions.0.gpu_type", "partitions.0.cpu_bind"),
        *("network.fabric", "network.interfaces.0", "network.hcas.0", "network.plugin"),
        *("network.script", "preflight.interfaces.0", "preflight.hcas.0"),
        *("preflight.space./var/scratch", "preflight.space./var/scratch!"),
        *("directives.licenses", "directives.licenses!", "directives.requeue!"),
        *("env.S!", "env_blocks.0.env.A!", "env_blocks.1.env.B!", "env_blocks.2.env.D!"),
        *("env_blocks.1.mode",),
    },
}


def texts(value: Any, path: str = "") -> Iterator[str]:
    """Yield the dotted place of each text, and of each name that the writer chooses."""
    if isinstance(value, str):
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in () if isinstance(value, str) else pairs:
        if not isinstance(inner, int):
            yield from texts(inner, f"{path}.{key}" if path else str(key))
        if isinstance(value, dict) and path.rpartition(".")[2] in _NAMED:
            yield f"{path}.{key}!"


def changed(value: Any, path: str, text: str) -> Any:
    """Return the value with a text, or the name that `!` marks, replaced."""
    if not path:
        return text
    head, _, rest = path.partition(".")
    if isinstance(value, list):
        return [changed(v, rest, text) if str(i) == head else v for i, v in enumerate(value)]
    if head.endswith("!"):
        return {text if key == head[:-1] else key: inner for key, inner in value.items()}
    return {k: changed(v, rest, text) if k == head else v for k, v in value.items()}


JOB_PLACES = [place for place in texts(JOB) if place not in CODE]
SITE_PLACES = [place for place in texts(SITE) if place not in CODE]


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    def make(site: Any = SITE, job: Any = JOB) -> str:
        # JSON is YAML: its escapes carry what no YAML file may hold as it is.
        (tmp_path / "big.yaml").write_text(json.dumps(site))
        (tmp_path / "job.yaml").write_text(json.dumps(job))
        found = load_site(str(tmp_path / "big.yaml"))
        return render_script(make_plan(load_job(tmp_path / "job.yaml", ()), found)).text

    return make


def directives(text: str) -> list[str]:
    """Read them as sbatch does: up to the first line that is neither a comment nor empty."""
    found = []
    for line in re.split(r"[\r\n]", text):
        if line.startswith("#SBATCH"):
            found.append(line)
        elif line.strip() and not line.startswith("#"):
            break
    return found


def tried(make: Callable[..., str], plain: str, place: str, text: str, which: str) -> bool:
    """Say whether a text is refused; one that is not adds no option."""
    basis = SITE if which == "site" else JOB
    try:
        found = make(**{which: changed(basis, place, text)})
    except REFUSALS:
        return True
    options = [line.partition("=")[0] for line in directives(found)]
    wanted = [line.partition("=")[0] for line in directives(plain)]
    assert options == wanted, (place, text)
    return False


@pytest.mark.parametrize("each", [3, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("which", ["job", "site"])
def test_no_text_becomes_an_option(script: Callable[..., str], which: str, each: int) -> None:
    """Each text at every third place; `make long` has all places."""
    plain = script()
    for place in sorted(JOB_PLACES if which == "job" else SITE_PLACES)[::each]:
        refused = [tried(script, plain, place, text, which) for text in REFUSED]
        # As file names, arguments and values most are fine.
        assert all(refused) == (place in NEVER[which]), (place, refused)


@pytest.mark.parametrize("letter", ["\0", "\ud800"])
def test_nothing_takes_a_nul_or_half_a_letter(script: Callable[..., str], letter: str) -> None:
    for place in (*JOB_PLACES, "setup.0"):
        with pytest.raises(SpecError):
            script(job=changed(JOB, place, f"/a{letter}b"))
    for place in (*SITE_PLACES, *sorted(CODE)):
        with pytest.raises(SiteProfileError):
            script(site=changed(SITE, place, f"/a{letter}b"))
