"""F1 to F10: cores, memory and GPUs as they are asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Memory
from hpc_train.lint.lint_script import lint_script
from hpc_train.runs.run import SlurmEndpoint
from hpc_train.slurm.slurm_commands import environment_changes, notices
from tests.traps.conftest import Execute
from tests.traps.made import BELOW_SRUN, LAUNCHERS, argv, directives, planned, script, small

OUTER = (
    "SLURM_JOB_ID SLURM_CPU_BIND SLURM_CPUS_PER_TASK SLURM_TRES_PER_TASK PMI_RANK PMIX_RANK "
    "OMPI_COMM_WORLD_SIZE PRTE_MCA_x MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK"
).split()


@pytest.mark.parametrize("launcher", BELOW_SRUN)
def test_f01_srun_is_told_the_cores(launcher: str) -> None:
    cores = 8 if launcher in ("srun", "deepspeed") else 32
    assert f" --cpus-per-task={cores} " in argv(launcher)
    assert "--cpus-per-gpu" not in argv(launcher)


@pytest.mark.parametrize("launcher", BELOW_SRUN)
def test_f02_the_cores_of_job_and_step_agree(launcher: str) -> None:
    numbers = re.findall(r"--cpus-per-task=(\d+)", script(launcher))
    assert len(numbers) == 2
    assert len(set(numbers)) == 1


def test_f03_nothing_of_an_outer_job_is_passed_on() -> None:
    kept = {"SLURM_CONF": "/c", "SLURM_CLUSTERS": "a", "HOME": "/h"}
    environment = {**dict.fromkeys(OUTER, "1"), **kept}
    assert environment_changes(environment, SlurmEndpoint(), ()) == dict.fromkeys(OUTER)
    assert "this shell is inside Slurm job 1; 13 of its variables" in notices(environment, {})[0]


def test_f04_no_variable_contradicts_the_script() -> None:
    environment = {"SBATCH_MEM_PER_NODE": "1G", "SBATCH_QOS": "low"}
    assert environment_changes(environment, SlurmEndpoint(), {"mem"}) == {
        "SBATCH_MEM_PER_NODE": None
    }
    said = notices(environment, {"mem": "4G"})
    assert said[0] == "SBATCH_MEM_PER_NODE=1G is ignored: the script sets --mem itself"
    assert said[1] == "SBATCH_QOS=low is effective: sbatch reads it as --qos"


def test_f05_memory_has_one_form_and_is_never_0() -> None:
    size = {"tasks_per_node": 1, "cpus_per_task": 1, "exclusive": True}
    text = script(resources={**size, "mem": "1.5G"})
    assert [line for line in directives(text) if "mem" in line] == ["#SBATCH --mem=1536M"]
    for nothing in ("0", "0G", "100K", "0.4M"):
        with pytest.raises(ValueError, match="not a memory size"):
            Memory.parse(nothing)
    with pytest.raises(PlanError, match="big forbids a memory request"):
        planned(resources={**size, "mem": "1G"}, site={"mem_request": "forbidden"})
    assert "HT109" in {finding.id for finding in lint_script(script(resources=size))}
    assert "HT109" not in {finding.id for finding in lint_script(text)}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_f06_threads_are_the_cores_of_a_rank(launcher: str) -> None:
    assert "export OMP_NUM_THREADS=8" in script(launcher)


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("form", ["gpus-per-node", "gres"])
def test_f07_f08_gpus_are_asked_for_by_node(launcher: str, form: str) -> None:
    size = {"gpus_per_node": 4, "cpus_per_task": 8, "tasks_per_node": 1}
    text = script(launcher, resources=size, site={"gpu_request": form})
    assert re.findall(r"--(?:gpus|gres|tres|gpu-bind)[^ \n:]*", "\n".join(directives(text))) == [
        {"gres": "--gres=gpu", "gpus-per-node": "--gpus-per-node=4"}[form]
    ]
    assert not re.search("--(gpus-per-task|gpu-bind|tres-per-task|tres-bind)", text)
    assert "--ntasks-per-node=1" in text


def test_f08_gpus_per_task_have_a_number_of_tasks() -> None:
    size = {"gpus_per_node": 4, "cpus_per_task": 8}
    lines = directives(script("srun", resources=size, site={"gpu_request": "gpus-per-task"}))
    assert "#SBATCH --gpus-per-task=1" in lines
    assert "#SBATCH --ntasks-per-node=4" in lines


@pytest.mark.parametrize(("form", "count"), [("gpus-per-node", 1), ("gres", 1), ("none", 0)])
def test_f09_gpus_are_asked_for_once(form: str, count: int) -> None:
    lines = directives(script(site={"gpu_request": form}))
    assert sum("gpu" in line for line in lines) == count


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_f10_no_rank_hides_gpus(launcher: str) -> None:
    assert "VISIBLE_DEVICES" not in script(launcher)


def test_f10_each_rank_sees_the_gpus_of_its_node(execute: Execute, tmp_path: Path) -> None:
    code = 'echo "$CUDA_VISIBLE_DEVICES $LOCAL_RANK"'
    done = execute(small(code), tmp_path, CUDA_VISIBLE_DEVICES="0,1")
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        assert (tmp_path / "logs" / f"rank-{rank}.out").read_text() == f"0,1 {rank}\n"
