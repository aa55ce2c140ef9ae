"""Studies: the grid, its baseline, and what is wrong with either."""

from pathlib import Path

import pytest

from hpc_train.base.errors import SpecError
from hpc_train.jobs.override import parse_setting
from hpc_train.jobs.study import Study
from tests.jobs.read_files import load_study

STUDY = """\
name: s
job: {command: [a], env: {X: 1}}
axes:
  tasks_per_node: [1, 2]
  launcher: [torchrun, spawn]
scaling: strong
"""


def study(folder: Path, text: str = STUDY, *settings: str) -> Study:
    path = folder / "study.yaml"
    path.write_text(text)
    return load_study(path, [parse_setting(setting) for setting in settings])


def test_the_grid_is_the_product_of_the_axes(tmp_path: Path) -> None:
    found = study(tmp_path)
    cells = [(p.job.value.resources.tasks_per_node, p.job.value.launcher) for p in found.points]
    assert cells == [(1, "torchrun"), (1, "spawn"), (2, "torchrun"), (2, "spawn")]
    assert found.points[0].job.origin("launcher") == f"{tmp_path}/study.yaml:5"
    assert found.points[0].job.value.name == "s"


def test_the_job_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("name: j\ncommand: [a]\n")
    found = study(tmp_path, STUDY.replace("{command: [a], env: {X: 1}}", "job.yaml"))
    assert found.points[0].job.value.name == "j"
    assert found.points[0].job.origin("command") == f"{tmp_path}/job.yaml:2"


def test_an_axis_may_be_any_key_of_the_job(tmp_path: Path) -> None:
    text = STUDY.replace("launcher: [torchrun, spawn]", "env.X: [1, 2, 3]")
    assert [p.job.value.env["X"] for p in study(tmp_path, text).points] == [
        "1",
        "2",
        "3",
        "1",
        "2",
        "3",
    ]


def test_the_smallest_size_is_the_baseline(tmp_path: Path) -> None:
    assert study(tmp_path).baseline == {"tasks_per_node": 1}
    long = study(tmp_path, STUDY.replace("tasks_per_node:", "resources.tasks_per_node:"))
    assert long.baseline == {"resources.tasks_per_node": 1}
    given = study(tmp_path, STUDY + "baseline: {tasks_per_node: 2, launcher: spawn}\n")
    assert given.baseline == {"tasks_per_node": 2, "launcher": "spawn"}


def test_settings_reach_the_study_or_its_job(tmp_path: Path) -> None:
    found = study(tmp_path, STUDY, "repetitions=7", "axes.launcher=[mpirun]", "env.Y=z")
    assert found.spec.repetitions == 7
    assert len(found.points) == 2
    assert found.points[1].job.value.env == {"X": "1", "Y": "z"}
    assert found.points[1].job.value.launcher == "mpirun"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("launcher:", "lancher:"), "study.yaml:5: 'lancher' is not a key of a job; did you mean"),
        (("[1, 2]", "[]"), "study.yaml:4: the axis 'tasks_per_node' has no values"),
        (("[1, 2]", "[1, 1]"), "study.yaml:4: the axis 'tasks_per_node' has the same value twice"),
        (("[1, 2]", "[0, 1]"), "study.yaml:4: resources.tasks_per_node: must be a whole number"),
        (("[1, 2]", "3"), "study.yaml:4: axes.tasks_per_node: must be a list, not 3"),
        (("strong", "stong"), "study.yaml:6: scaling: must be 'strong' or 'weak'"),
        (("launcher:", "resources.tasks_per_node:"), "two axes name the same key"),
        (("job: {command: [a], env: {X: 1}}", "job: nojob.yaml"), "nojob.yaml: No such file"),
        (("[a]", "[1]"), "study.yaml:2: command.0: must be text, not 1"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    with pytest.raises(SpecError) as failure:
        study(tmp_path, STUDY.replace(*change))
    assert message in failure.value.message


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        ("{tasks_per_node: 3}", "the baseline tasks_per_node=3 is not in the grid"),
        ("{nodes: 1}", "the baseline names 'nodes', which is not an axis"),
        ("{launchr: spawn}", "did you mean 'launcher'?"),
    ],
)
def test_a_baseline_outside_the_grid(tmp_path: Path, baseline: str, message: str) -> None:
    with pytest.raises(SpecError, match=r"study\.yaml:7: ") as failure:
        study(tmp_path, f"{STUDY}baseline: {baseline}\n")
    assert message in failure.value.message


def test_a_setting_that_an_axis_would_override_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'tasks_per_node' is an axis") as failure:
        study(tmp_path, STUDY, "resources.tasks_per_node=4")
    assert failure.value.hint == "change the axis: --set 'axes.tasks_per_node=[4]'"


def test_an_absurd_number_of_runs(tmp_path: Path) -> None:
    values = ", ".join(map(str, range(1, 400)))
    text = STUDY.replace("[1, 2]", f"[{values}]") + "repetitions: 1000\n"
    with pytest.raises(SpecError, match=r"798000 runs .points x repetitions.; at most 100000"):
        study(tmp_path, text)
