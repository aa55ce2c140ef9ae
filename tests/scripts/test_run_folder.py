"""Which folder a script takes for its run, and what it says when a host does not see it."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.plans.plan import LaunchPlan

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
SAY = ["bash", "-c", 'printf %s "$HPCTRAIN_RUN"']
HOSTILE = ["a b, c=d", "$(touch pwned)", 'it\'s "q"', "größe", "-n", "%j \\", "a\nb"]
# Where the folder of the logs is looked for, on a node that does not see it (yet).
HIDE = 'mv "$HPCTRAIN_LOG_DIR" "$HPCTRAIN_LOG_DIR.away"'


def slurm(plan: Plans, *, nodes: int = 1, **keys: object) -> LaunchPlan:
    resources = {"nodes": nodes, "tasks_per_node": 1, "cpus_per_task": 1, "time": "5m"}
    return plan("slurm-generic", launcher="srun", resources=resources, **keys)


def status(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "status.json").read_text())
    return found


def told(folder: Path) -> str:
    return (folder / "logs" / "rank-0.out").read_text()


def not_there(folder: Path, host: str) -> str:
    return (
        f"hpctrain: {folder} does not exist on {host}; the results must be on a file "
        "system that all nodes share (--results DIR)\n"
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_the_first_argument_is_the_folder(
    plan: Plans, execute: Execute, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    done = execute(slurm(plan, command=SAY), folder, HPCTRAIN_RUN=str(tmp_path / "other"))
    assert done.returncode == 0, done.stderr
    assert told(folder) == str(folder)
    assert status(folder)["exit_code"] == 0
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("ending", ["", ".2", HOSTILE[1]])
def test_two_arguments_stand_around_the_number_of_the_array_task(
    plan: Plans, execute: Execute, tmp_path: Path, ending: str
) -> None:
    folder = tmp_path / f"it's 2, $HOME-r7{ending}"
    folder.mkdir()
    prefix = tmp_path / "it's 2, $HOME-r"
    ids = {"SLURM_JOB_ID": "43", "SLURM_ARRAY_JOB_ID": "41", "SLURM_ARRAY_TASK_ID": "7"}
    done = execute(slurm(plan, command=SAY), prefix, ending, **ids)
    assert done.returncode == 0, done.stderr
    assert told(folder) == str(folder)
    assert status(folder)["job"] == "41_7"


def test_without_arguments_the_variable_counts(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    done = execute(plan(command=SAY, launcher="single"), HPCTRAIN_RUN=str(folder))
    assert done.returncode == 0, done.stderr
    assert (told(folder), status(folder)["job"]) == (str(folder), "")


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_a_folder_that_is_not_there_is_not_made(
    plan: Plans, execute: Execute, tmp_path: Path, by: str
) -> None:
    folder = tmp_path / "local" / "mine"
    job = slurm(plan, command=["touch", str(tmp_path / "ran")])
    if by == "argument":
        done = execute(job, folder)
    else:
        done = execute(job, HPCTRAIN_RUN=str(folder))
    assert (done.returncode, done.stdout) == (1, "")
    missing = f"{folder}/runtime.sh, which belongs to this script, does not exist on "
    assert done.stderr.startswith(f"hpctrain: {missing}")
    assert "(--results DIR)" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"bin", "job.sbatch", "runtime.sh"}


@pytest.mark.process
def test_a_node_that_does_not_see_the_folder_says_so_and_starts_nothing(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    job = slurm(plan, nodes=2, command=["touch", str(tmp_path / "ran")])
    done = execute(job, folder, BEFORE=HIDE)
    assert done.returncode != 0
    # The first of them ends the others.
    said = set(done.stderr.splitlines(keepends=True))
    assert said & {not_there(folder, "node0"), not_there(folder, "node1")}
    assert not (tmp_path / "ran").exists()
    assert not (folder / "logs").exists()
    assert (status(folder)["exit_code"], status(folder)["failure"]) == (done.returncode, None)


def test_another_attempt_is_marked_in_each_log(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    event = '@hpct {"step": 1, "step_time": 0.5}'
    job = slurm(plan, nodes=2, command=["echo", event])
    (tmp_path / "mine").mkdir()
    first = execute(job, tmp_path / "mine", SLURM_RESTART_COUNT="0")
    # Of a launcher that starts the ranks of a node.
    of_node = tmp_path / "mine" / "logs" / "node-1.out"
    of_node.write_text(event)
    second = execute(job, tmp_path / "mine", SLURM_RESTART_COUNT="1")
    assert of_node.read_text() == f"{event}\nhpctrain: restart 1\n"
    assert (first.stdout, second.stdout) == ("", "hpctrain: restart 1\n")
    for rank in (0, 1):
        lines = (tmp_path / "mine" / "logs" / f"rank-{rank}.out").read_text().splitlines()
        assert [line for line in lines if line] == [event, "hpctrain: restart 1", event]
    assert status(tmp_path / "mine")["restart_count"] == 1


SHOW = 'mv "$HPCTRAIN_LOG_DIR.away" "$HPCTRAIN_LOG_DIR"'


@pytest.mark.process
def test_a_folder_that_a_node_sees_a_moment_later_will_do(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    job = slurm(plan, nodes=2, command=SAY)
    done = execute(job, folder, BEFORE=f"{HIDE}; (sleep 0.5; {SHOW}) & disown")
    assert (done.returncode, done.stderr) == (0, "")
    assert told(folder) == str(folder)
