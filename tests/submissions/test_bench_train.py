"""The study of `bench train`: sizes of a machine, a new name for each."""

from pathlib import Path

import pytest

from hpc_train.base.data_folders import strategies_study
from hpc_train.base.errors import PlanError
from hpc_train.scripts.prepare import Prepared, Request, prepare
from hpc_train.sites.load import Machine
from hpc_train.submissions.bench import check_this_machine, sizes, train_overrides


def study(tmp_path: Path, site: str, *strategies: str, cpus: int = 2, gpus: int = 0) -> Prepared:
    own = train_overrides(tmp_path, strategies, 30, Machine(cpus=cpus, gpus=gpus))
    return prepare(Request(path=strategies_study(), site=site, overrides=own))


def test_ranks_are_powers_of_two_up_to_the_gpus_or_cores() -> None:
    assert sizes(Machine(cpus=6, gpus=0)) == (1, 2, 4)
    assert sizes(Machine(cpus=64, gpus=2)) == (1, 2)
    assert sizes(Machine(cpus=64, gpus=0)) == (1, 2, 4, 8)


def test_every_strategy_is_run_or_refused_with_a_reason(tmp_path: Path) -> None:
    prepared = study(tmp_path, "local")
    run = {(point.axes["strategy"], point.axes["tasks_per_node"]) for point in prepared.points}
    reasons = {
        (point.axes["strategy"], point.axes["tasks_per_node"]): point.reason
        for point in prepared.refused
    }
    assert run >= {("single", 1), ("ddp", 2), ("fsdp", 2), ("pipeline", 2)}
    assert "has no effect on a CPU" in reasons["dp", 1]
    assert "use 1 rank or ddp" in reasons["single", 2]
    assert len(run) + len(reasons) == 13 * 2
    command = prepared.points[0].job.value.command
    assert command[command.index("--steps") + 1] == "30"


def test_each_study_has_a_folder_of_its_own(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        found = {one.key: one.value for one in train_overrides(tmp_path, (), 30)}
        names.append(found["name"])
        (tmp_path / names[-1]).mkdir()
    assert names == ["bench-train", "bench-train-2", "bench-train-3"]


def test_a_cluster_is_not_this_machine(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="measures this machine, but the site is slurm-generic"):
        check_this_machine(study(tmp_path, "slurm-generic", "ddp"))
