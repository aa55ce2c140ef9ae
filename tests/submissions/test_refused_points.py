"""A study leaves out the strategies that cannot run, and its report says why."""

from pathlib import Path

import pytest

from hpc_train.base.errors import PlanError, SpecError
from hpc_train.scripts.prepare import Prepared, Request, prepare, request_of
from hpc_train.submissions.submit import check_checkpoint_folders, dry_run, study_manifest, submit

STUDY = """
name: compared
job:
  command: [python, -m, hpc_train.trainer.train]
  trainer: {model: MODEL}
  resources: {nodes: 1, cpus_per_task: 1, time: 5m}
scaling: strong
axes: {strategy: [STRATEGIES], tasks_per_node: [1, 2]}
"""


def study(tmp_path: Path, strategies: str, model: str = "gpt-tiny") -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("MODEL", model).replace("STRATEGIES", strategies))
    return path


def test_the_points_that_can_run_are_kept(tmp_path: Path) -> None:
    prepared = prepare(request_of(study(tmp_path, "single, pipeline"), (), "local", {}))
    assert [tuple(point.axes.values()) for point in prepared.points] == [
        ("single", 1),
        ("pipeline", 2),
    ]
    assert [point.axes for point in study_manifest(prepared).refused] == [
        {"strategy": "single", "tasks_per_node": 2},
        {"strategy": "pipeline", "tasks_per_node": 1},
    ]
    assert prepared.refused[0].reason.startswith("single runs in one process, but the job has 2")
    assert any("left out: pipeline places the layers" in text for text in prepared.warnings)


def test_a_study_without_a_point_that_can_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"study\.yaml:8: tensor divides linear layers, but cnn"):
        prepare(request_of(study(tmp_path, "tensor", "cnn"), (), "local", {}))


NAME = "env.HPCTRAIN_CHECKPOINTS"
FOLDERS = f"{NAME}: [/scratch/a, /scratch/b]"


def study_over(desk: Path, axis: str, repetitions: int) -> Prepared:
    path = desk / "study.yaml"
    path.write_text(
        f"name: s\njob:\n  command: ['true']\n  env: {{{NAME[4:]}: /scratch/x}}\n"
        f"axes: {{{axis}}}\nrepetitions: {repetitions}\nscaling: strong\n"
    )
    return prepare(Request(path=path))


@pytest.mark.parametrize(
    ("axis", "repetitions", "who"),
    [("env.X: [1, 2]", 1, " and "), ("env.X: [1]", 2, "its repetitions"), (FOLDERS, 2, "its rep")],
)
def test_runs_of_a_study_do_not_share_their_checkpoints(
    desk: Path, axis: str, repetitions: int, who: str
) -> None:
    shared = study_over(desk, axis, repetitions)
    for attempt in (
        lambda: submit(shared, Path("results"), []),
        lambda: list(dry_run(shared, Path("results"))),
    ):
        with pytest.raises(SpecError, match="is one folder for several runs of the study") as error:
            attempt()
        assert who in error.value.message
        assert error.value.hint.startswith(f"leave {NAME} out")
    assert not Path("results").exists()


def test_each_run_may_have_a_folder_of_its_own(desk: Path) -> None:
    check_checkpoint_folders(study_over(desk, FOLDERS, 1))
    check_checkpoint_folders(study_over(desk, "env.X: [1]", 1))
