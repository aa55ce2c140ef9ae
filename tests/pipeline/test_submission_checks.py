"""What a submission refuses before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hpc_train.errors import SpecError
from hpc_train.pipeline.dry_run import dry_run
from hpc_train.pipeline.prepared import Prepared
from hpc_train.pipeline.render import Request, prepare
from hpc_train.pipeline.submission_checks import check_checkpoint_folders
from hpc_train.pipeline.submit import SubmitOptions, submit

NAME = "env.HPCTRAIN_CHECKPOINTS"
FOLDERS = f"{NAME}: [/scratch/a, /scratch/b]"


def study(desk: Path, axis: str, repetitions: int) -> Prepared:
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
    shared = study(desk, axis, repetitions)
    for attempt in (
        lambda: submit(shared, Path("results"), []),
        lambda: list(dry_run(shared, Path("results"), SubmitOptions())),
    ):
        with pytest.raises(SpecError, match="is one folder for several runs of the study") as error:
            attempt()
        assert who in error.value.message
        assert error.value.hint.startswith(f"leave {NAME} out")
    assert not Path("results").exists()


def test_each_run_may_have_a_folder_of_its_own(desk: Path) -> None:
    check_checkpoint_folders(study(desk, FOLDERS, 1))
    check_checkpoint_folders(study(desk, "env.X: [1]", 1))


def test_containers_of_requests_have_file_systems_of_their_own(desk: Path) -> None:
    shared = study(desk, "env.X: [1, 2]", 1)
    points = tuple(replace(point, request={"TrainingJobName": "x"}) for point in shared.points)
    check_checkpoint_folders(replace(shared, points=points))
