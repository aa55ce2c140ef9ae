"""Ranks in images, run with programs that open none: what gets in, and what is recorded."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpc_train.plans.plan import LaunchPlan
from tests.scripts.stubs import SITE, calls, install

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "NOTE", "KEY", "OUTSIDE")
SAY = 'printf "%s|" ' + " ".join(f'"${name}"' for name in NAMES) + ' "$@"'


@pytest.fixture
def boxed(plan: Plans, execute: Execute, tmp_path: Path) -> Plans:
    """Make plans of jobs in an image that is there, two ranks unless the launcher is single."""
    install(tmp_path / "bin")
    (tmp_path / "an image.img").touch()

    def make(runtime: str = "apptainer", launcher: str = "srun", **keys: Any) -> LaunchPlan:
        (tmp_path / "big.yaml").write_text(f"{SITE}containers: {{runtime: {runtime}}}\n")
        box = {"image": str(tmp_path / "an image.img"), "env": ["KEY"], **keys.pop("box", {})}
        size = {"nodes": 1 if launcher in ("single", "mpirun") else 2, "cpus_per_task": 1}
        if launcher == "mpirun":
            size["tasks_per_node"] = 2
        command = keys.pop("command", ["bash", "-c", SAY, "say", "a b"])
        job = {"command": command, "resources": size, "env": {"NOTE": "it's, a b"}}
        return plan(str(tmp_path / "big.yaml"), launcher=launcher, container=box, **job, **keys)

    return make


def run(execute: Execute, plan: LaunchPlan, folder: Path, **environment: str) -> str:
    """Run a job in a folder; return its exit code and what it printed."""
    (folder / "notes").mkdir(exist_ok=True)
    names = {"NOTES": str(folder / "notes"), "KEY": "k 1", "OUTSIDE": "o"}
    done = execute(plan, folder, **{**names, **environment})
    return f"{done.returncode} {done.stdout}{done.stderr}"


def said(folder: Path, name: str = "rank-0") -> list[str]:
    return (folder / "logs" / f"{name}.out").read_text().split("|")[:-1]


def failure(folder: Path) -> Any:
    return json.loads((folder / "status.json").read_text())["failure"]


@pytest.mark.parametrize(
    "launcher",
    [
        *("srun", "torchrun", "ibrun", "accelerate", "deepspeed", "single"),
        pytest.param("mpirun", marks=pytest.mark.mpi),
    ],
)
def test_ranks_in_apptainer_know_themselves_and_nothing_of_the_host(
    boxed: Plans, execute: Execute, tmp_path: Path, launcher: str
) -> None:
    told = run(execute, boxed(launcher=launcher), tmp_path)
    assert told == "0 ", told
    for rank in range(1 if launcher == "single" else 2):
        names = said(tmp_path, f"rank-{rank}")
        assert names[0] == str(rank)
        size = "1" if launcher == "single" else "2"
        assert names[2:8] == [size, "localhost", "it's, a b", "k 1", "", "a b"]
        assert names[8:] == ([f"--local_rank={names[1]}"] if launcher == "deepspeed" else [])


def test_spawn_in_apptainer(boxed: Plans, execute: Execute, tmp_path: Path) -> None:
    job = boxed(launcher="spawn", command=["bash", "-c", 'echo "$NODE_RANK|$WORLD_SIZE|"'])
    assert run(execute, job, tmp_path) == "0 "
    assert [said(tmp_path, f"node-{node}") for node in (0, 1)] == [["0", "2"], ["1", "2"]]


ENTRANCES = [
    (runtime, launcher)
    for runtime in ("apptainer", "shifter", "pyxis")
    for launcher in ("srun", "torchrun", "accelerate", "deepspeed")
]


@pytest.mark.parametrize(("runtime", "launcher"), [*ENTRANCES, ("apptainer", "ibrun")])
def test_the_code_of_a_rank_in_an_image(
    boxed: Plans, execute: Execute, tmp_path: Path, runtime: str, launcher: str
) -> None:
    fail = ["bash", "-c", 'echo "oh $RANK"; [ "$RANK" = 0 ] || exit 7']
    assert run(execute, boxed(runtime, launcher, command=fail), tmp_path)[0] != "0"
    found = failure(tmp_path)
    assert (found["rank"], found["exit_code"]) == (1, 7)
    assert found["host"]
    assert (tmp_path / "first_failure.log").read_text() == "oh 1\n"


def test_an_image_with_sh_and_nothing_else(boxed: Plans, execute: Execute, tmp_path: Path) -> None:
    """Under torchrun the ranks are born inside: no bash, date, tail or sleep is there."""
    inside = tmp_path / "inside"
    inside.mkdir()
    dash = shutil.which("dash")
    if dash is None:
        pytest.skip("dash is not here; apt-get install dash")
    (inside / "sh").symlink_to(dash)
    # The agent is what Python would be there.
    shutil.copy(tmp_path / "bin" / "torchrun", inside / "torchrun")
    fail = ["sh", "-c", 'echo "oh $RANK"; [ "$RANK" = 0 ] || exit 7']
    job = boxed(launcher="torchrun", command=fail)
    assert run(execute, job, tmp_path, INSIDE=str(inside))[0] != "0"
    found = failure(tmp_path)
    assert (found["rank"], found["exit_code"], found["time"]) == (1, 7, None)
    assert found["host"] == "node1"
    assert (tmp_path / "logs" / "rank-1.out").read_text() == "oh 1\n"
    assert not (tmp_path / "first_failure.log").exists()


def test_the_description_for_the_container_engine(
    boxed: Plans, execute: Execute, tmp_path: Path
) -> None:
    tomllib = pytest.importorskip("tomllib")
    odd = "/a 'b' \"c\" \\d größe # ]"
    box = {"image": 'it\'s "a\\b"', "mounts": [f"{odd}:/c:ro"], "workdir": odd, "writable": True}
    assert run(execute, boxed("edf", box=box), tmp_path) == "0 "
    words = next(calls(tmp_path / "notes", "srun"))
    file = next(word for word in words if word.startswith("--environment=")).partition("=")[2]
    text = Path(file).read_text()
    found = tomllib.loads(text)
    passed = found.pop("env")
    assert passed["KEY"] == "${OUTSIDE_KEY}"
    assert {"NOTE", "MASTER_ADDR", "OMP_NUM_THREADS"} < set(passed)
    assert "k 1" not in text
    assert found == {
        "base_environment": box["image"],
        "mounts": [f"{tmp_path}:{tmp_path}", f"{tmp_path}:{tmp_path}", f"{odd}:/c:ro"],
        "workdir": odd,
        "writable": True,
    }


def test_shifter_sets_what_the_image_would_override(
    boxed: Plans, execute: Execute, tmp_path: Path
) -> None:
    assert run(execute, boxed("shifter"), tmp_path) == "0 "
    words = next(calls(tmp_path / "notes", "shifter"))
    assert {"--env=KEY=k 1", "--env=NOTE=it's, a b", "--env=OMP_NUM_THREADS=1"} < set(words)
    unset = boxed("shifter", box={"env": ["NOT_THERE"]})
    assert "1 hpctrain: container.env: NOT_THERE is not set" in run(execute, unset, tmp_path)


def test_a_run_folder_that_cannot_be_mounted(
    boxed: Plans, execute: Execute, tmp_path: Path
) -> None:
    folder = tmp_path / "a,b"
    folder.mkdir()
    told = run(execute, boxed("pyxis"), folder)
    assert told.startswith(f"1 hpctrain: pyxis cannot mount {folder}; use a path without any")
