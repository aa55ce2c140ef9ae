"""Sizes of logs as a person states them, and runs that a person leaves out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.errors import HpcTrainError, LogParseError, ReportError
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import ReportInputs, exclusions, report_inputs, without
from hpc_train.runs.expected_runs import ExpectedRun
from tests.cases import cases


def steps(seconds: float, world: int | None = None) -> str:
    said = f'@hpct {{"world_size": {world}}}\n' if world else ""
    return said + "".join(
        f"iter {n}: loss 2.5000, time {1000 * seconds:.2f}ms, mfu 20.00%\n" for n in range(1, 40)
    )


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, seconds in (("n1-a", 0.4), ("n1-b", 0.4001), ("n2-a", 0.2)):
        (folder / f"{name}.log").write_text(f"{name}\n{steps(seconds)}")
    return tmp_path


def stated(folder: Path, text: str, *words: str, **search: Any) -> ReportInputs:
    path = folder / "points.yaml"
    path.write_text(text)
    if not words:
        return report_inputs([str(path)], Search(root=folder / "none", **search))
    names = [str(folder / word) for word in words]
    return report_inputs(names, Search(root=folder / "none", points=path, **search))


def runs(found: ReportInputs) -> Mapping[str, ExpectedRun]:
    return {run.run_id: run for run in found.study.runs}


FLAT = (
    "logs/n1-*.log: {nodes: 1, gpus_per_node: 4, global_batch: 64, torch: 2.8, data: c4}\n"
    "logs/n2-a.log: {nodes: 2, gpus: 8, global_batch_size: 64, torch: 2.8, data: c4}\n"
)


@pytest.mark.parametrize(
    "words", [(), ("logs",), ("logs/n1-a.log", "logs/n1-b.log", "logs/n2-a.log")]
)
def test_sizes_make_points_and_the_batch_makes_a_rate(logs: Path, words: tuple[str, ...]) -> None:
    found = stated(logs, FLAT, *words)
    sizes = {"nodes": 2, "gpus_per_node": 4, "tasks_per_node": 4, "ranks": 8}
    assert runs(found)["n2-a.log"].sizes == sizes
    assert runs(found)["n1-b.log"].repetition == 2
    assert runs(found)["n1-b.log"].conditions == {"torch": "2.8", "data": "c4"}
    _, two = build_report(found).tables[0].records
    assert two["speedup"]["value"] == pytest.approx(2, rel=1e-3)
    assert (two["regime"], two["global_batch"]) == ("strong", 64)


def test_a_file_with_more_than_sizes(logs: Path) -> None:
    text = (
        "name: mine\nscaling: strong\nbaseline: {nodes: 2}\nwarmup: {steps: 5}\n"
        "gates: {efficiency: 0.9}\npoints:\n"
        "  logs/n1-a.log: {nodes: 1, gpus_per_node: 4, launcher: srun}\n"
        "  logs/n2-a.log: {nodes: 2, gpus_per_node: 4, launcher: srun}\n"
    )
    study = stated(logs, text).study
    assert (study.name, study.scaling, study.baseline) == ("mine", "strong", {"nodes": 2})
    assert (study.warmup.steps, study.gates.efficiency) == (5, 0.9)
    assert study.runs[0].axes == {"launcher": "srun"}


def test_an_exact_name_precedes_a_pattern_and_each_pattern_names_its_own(logs: Path) -> None:
    text = "'n1-*': {nodes: 1}\n'n2-*': {nodes: 2}\nn1-b.log: {nodes: 4}\n"
    found = runs(stated(logs, text, "logs"))
    sizes = {name: run.sizes["nodes"] for name, run in found.items()}
    assert sizes == {"n1-a.log": 1, "n1-b.log": 4, "n2-a.log": 2}


def test_a_log_without_a_key_is_named(logs: Path) -> None:
    found = stated(logs, "n1-a.log: {nodes: 1}\n", "logs")
    assert "does not state n1-b.log, n2-a.log" in " ".join(found.study.notes)
    assert len(found.study.runs) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    cases("foreign/mistakes_in_points.yaml", "what_is_wrong_in_the_file_is_said_with_its_line"),
)
def test_what_is_wrong_in_the_file_is_said_with_its_line(logs: Path, text: str, said: str) -> None:
    with pytest.raises(LogParseError) as caught:
        stated(logs, text, "logs")
    assert said in caught.value.message, caught.value.message
    assert "points.yaml" in caught.value.message


def test_sizes_without_a_log_are_answered_with_an_example(logs: Path) -> None:
    (logs / "points.yaml").write_text("nodes: 1\ngpus: 4\n")
    with pytest.raises(LogParseError) as caught:
        report_inputs([str(logs / "points.yaml")], Search(root=logs / "none"))
    assert "some.log: {nodes: 2" in caught.value.hint


def test_a_key_that_names_no_file_is_answered_with_the_nearest(logs: Path) -> None:
    with pytest.raises(LogParseError, match=r"no log is called 'logs/n3-a\.log'; did you mean"):
        stated(logs, "logs/n3-a.log: {nodes: 3}\n")


def test_runs_that_a_person_leaves_out(logs: Path) -> None:
    text = FLAT.replace("gpus: 8", "gpus: 8, exclude: node was hot")
    found = stated(logs, text, excluded={"n1-b.log": "wrong partition"})
    ended = {run.run_id: (run.state, run.problem) for run in found.study.runs}
    assert ended["n1-b.log"] == ("EXCLUDED", "wrong partition")
    assert ended["n2-a.log"] == ("EXCLUDED", "node was hot")
    one, two = build_report(found).tables[0].records
    assert (one["n_ok"], one["n_submitted"], one["not_ok"]) == (1, 2, "1 EXCLUDED")
    assert (two["n_ok"], two["not_ok"]) == (0, "1 EXCLUDED")


def test_a_run_that_is_not_there_cannot_be_left_out(logs: Path) -> None:
    with pytest.raises(ReportError, match=r"--exclude: no run is called 'n1-c\.log'; did you mean"):
        stated(logs, FLAT, excluded={"n1-c.log": "x"})


def test_a_study_keeps_its_exclusions_in_a_file(logs: Path) -> None:
    study = stated(logs, FLAT).study
    (logs / "exclude.yaml").write_text("n1-a.log: node 3 was down\n")
    states = [run.state for run in without(study, {}, logs).runs]
    assert states == ["EXCLUDED", "COMPLETED", "COMPLETED"]
    for text, said in (
        ("n1-x.log: no\n", "exclude.yaml:1: no run is called 'n1-x.log'"),
        ("n1-a.log: ''\n", "exclude.yaml:1: n1-a.log: a reason is needed"),
        ("n1-a.log: 3\n", "exclude.yaml:1"),
        ("- n1-a.log\n", "exclude.yaml"),
    ):
        (logs / "exclude.yaml").write_text(text)
        with pytest.raises(ReportError) as caught:
            without(study, {}, logs)
        assert said in caught.value.message


@pytest.mark.parametrize("word", ["run", "run=", "=reason", "run=  "])
def test_no_run_is_left_out_without_a_reason(word: str) -> None:
    with pytest.raises(HpcTrainError, match="a run and a reason are needed"):
        exclusions([word])
