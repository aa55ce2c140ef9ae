"""Reports in a folder, the facts in them, and the gates of a rule."""

import csv
import json
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.jobs.log_selection import Search
from hpc_train.jobs.study import Gates
from hpc_train.logs.record import Record
from hpc_train.reports.build import build_report, diagnoses, provenance
from hpc_train.reports.gates import verdicts_of
from hpc_train.reports.report_inputs import ReportInputs, report_inputs
from hpc_train.reports.write_report import default_options, write_report
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.runs.run import Run
from hpc_train.scaling.record_arrays import record_arrays
from tests.scaling.studies import expected, study
from tests.submissions.runs_of import written

TABLE = """nodes,gpus_per_node,global_batch_size,samples_per_second
1,4,256,1000
1,4,256,1010
2,4,256,1900
2,4,256,1950
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("report")
    table, out = home / "mine.csv", home / "deep" / "out"
    table.write_text(TABLE, encoding="utf-8")
    found = report_inputs([str(table)], Search(root=home / "none"))
    written = write_report(build_report(found, default_options(out, None)), out, None)
    assert sorted(written) == sorted(out.iterdir())
    return out


def test_a_folder_gets_every_form(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    texts = {"report.html", "report.md", "report.tex", "report.json", "points.csv", "tidy.csv"}
    assert texts | {"tidy.parquet", "scaling.svg", "scaling.png", "scaling.pdf"} <= names
    assert "scaling.svg" in (folder / "report.md").read_text()
    assert "data:image/svg+xml;base64," in (folder / "report.html").read_text()
    rows = json.loads((folder / "report.json").read_text())["rows"]
    with (folder / "points.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    # Nine digits in CSV, all of them in JSON.
    assert float(second["speedup"]) == pytest.approx(rows[1]["speedup"]["value"], rel=1e-8)
    assert float(second["speedup"]) > float(first["speedup"]) == 1


def test_both_tidy_files_say_the_same(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    parquet = pd.read_parquet(folder / "tidy.parquet")
    text = pd.read_csv(folder / "tidy.csv")
    assert list(parquet.columns) == list(text.columns)
    assert parquet["value"].tolist() == text["value"].tolist()
    assert set(parquet["metric"]) >= {"samples_per_second", "global_batch_size"}


def test_each_picture_has_its_numbers_beside_it(folder: Path) -> None:
    pictures = {path.stem for path in folder.glob("*.svg")}
    assert pictures
    assert {path.stem for path in folder.glob("*.csv")} >= pictures


def test_the_gates_of_a_study_win_over_those_of_its_rule(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE.replace("1900", "1400").replace("1950", "1410"))
    inputs = report_inputs([str(tmp_path / "t.csv")], Search(root=tmp_path / "none"))
    for own, outcome in ((None, "not met"), (0.6, "met")):
        gates = Gates(rule="csc", efficiency=own)
        wanted = msgspec.structs.replace(inputs.study, gates=gates)
        decided = verdicts_of(build_report(msgspec.structs.replace(inputs, study=wanted)))
        found = {verdict.gate: verdict.outcome for verdict in decided}
        assert found["efficiency"] == outcome
        assert {"doubling", "node_counts", "script"} <= found.keys()


def found(runs: list[Run], *records: Record, **more: object) -> ReportInputs:
    wanted: ExpectedStudy = study([expected(one.folder.run_id) for one in runs])
    fields = record_arrays(records)
    return ReportInputs(study=wanted, records=fields, own=tuple(runs), **more)  # type: ignore[arg-type]


def facts(inputs: ReportInputs) -> dict[str, tuple[object, ...]]:
    return {fact.name: fact.values for fact in provenance(inputs)}


def test_a_diagnosis_tells_why_a_run_failed(tmp_path: Path) -> None:
    runs = [
        written(tmp_path, "a", "fine\n"),
        written(tmp_path, "b", "Traceback (most recent call last):\nKeyError: 'x'\n", 1),
    ]
    told = diagnoses(found(runs))
    assert [*told] == ["b"]
    assert "KeyError" in told["b"]


BUS = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    10.00    2.00    3.50      0
"""
STEPS = "".join(f"iter {n}: loss 2.5000, time 100.00ms, mfu 20.00%\n" for n in range(1, 30))


def problems(folder: Path, *texts: str) -> list[str]:
    for number, text in enumerate(texts):
        (folder / f"{number}.log").write_text(text)
    found = report_inputs([str(folder)], Search(root=folder / "none"))
    return [run.problem for run in found.study.runs]


def test_a_benchmark_of_a_network_is_named_as_one(tmp_path: Path) -> None:
    benchmark, both, training = problems(tmp_path, BUS, BUS + STEPS, STEPS)
    assert benchmark.startswith("a benchmark (algbw, busbw, latency), not a training")
    assert both == training == ""


def test_no_word_is_no_evidence(tmp_path: Path) -> None:
    with pytest.raises(LogParseError, match="no log was given"):
        report_inputs([], Search(root=tmp_path))


def test_a_log_with_a_number_of_ranks_only_is_not_called_a_benchmark(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text('@hpct {"event":"start","world_size":4}\n')
    (run,) = report_inputs([str(tmp_path / "job.log")], Search(root=tmp_path / "none")).study.runs
    assert run.problem.startswith(
        "a number of ranks, but no time or rate of training; see hpctrain"
    )
