"""Each documented metric -> logs, a table and records -> every format, with its unit."""

import csv
import functools
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from hpc_train.base.metrics import METRICS, UNITS
from hpc_train.base.registry import load
from hpc_train.jobs.log_selection import Search
from hpc_train.logs.record import kind_of
from hpc_train.reports.build import build_report
from hpc_train.reports.collect import collection, write_records
from hpc_train.reports.report import Report, ReportOptions
from hpc_train.reports.report_inputs import report_inputs

DOCS = Path(__file__).resolve().parents[2] / "docs"


Render = Callable[[Report], str]


class Shown(NamedTuple):
    """What two runs print, and of the second: key and value in JSON, heading and text."""

    printed: tuple[float, float]
    key: str
    value: float
    heading: str
    text: str


# Totals of the job; the second run has 4 ranks, each with one GPU.
EACH = {
    "step_time": Shown((0.5, 0.25), "step_time_s", 0.25, "step [ms]", "250.0"),
    "samples": Shown((5120, 6400), "samples_seen", 6400, "samples seen", "6400"),
    "samples_per_second": Shown((128, 250.5), "samples_per_second", 250.5, "samples/s", "250.5"),
    "epoch_time": Shown((40, 20.5), "epoch_time_s", 20.5, "epoch time [s]", "20.50"),
    "time_to_train": Shown((90, 47.5), "time_to_train_s", 47.5, "time to train [s]", "47.50"),
    "first_step_time": Shown((7, 8.25), "first_step_time_s", 8.25, "first step [s]", "8.250"),
    "global_batch_size": Shown((64, 64), "global_batch", 64, "batch", "64"),
    "tokens_per_step": Shown((5e4, 64125), "tokens_per_step", 64125, "tokens a step", "64125"),
    "world_size": Shown((2, 4), "ranks", 4, "ranks", "4"),
    "accuracy": Shown((0.9, 0.912), "accuracy", 0.912, "accuracy [%] (change)", "91.2 (+1.2)"),
    "loss": Shown((0.3, 0.2875), "loss", 0.2875, "loss", "0.2875"),
    "steps": Shown((80, 101), "optimiser_steps", 101, "optimiser steps", "101"),
    "tokens_per_second": Shown((1e5, 256500), "tokens_per_second", 256500, "tokens/s", "256500"),
    "tflops": Shown((300, 1406), "tflops_per_gpu", 351.5, "TFLOP/s a GPU", "351.5"),
    "energy": Shown((8e4, 97500), "energy_j", 97500, "energy [J]", "97500"),
    "power": Shown((1300, 2613), "power_w", 2613, "power [W]", "2613"),
    "mfu": Shown((0.41, 0.387), "mfu", 0.387, "MFU [%]", "38.7"),
    "memory": Shown((60, 61.25), "memory_gib", 61.25, "memory [GiB]", "61.25"),
    "learning_rate": Shown((0.1, 0.1), "learning_rate", 0.1, "learning rate", "0.1000"),
}
# They have no column: a condition is compared, and the provenance shows it; the others are in the
# tables of strategies.
NO_COLUMN = {
    "condition",
    "compute_time",
    "exposed_communication",
    "sent_bytes",
    "state_memory",
}
DERIVED = {
    "energy_per_sample_j": (97500 / 6400, "J per sample", "15.23"),
    "energy_per_token_j": (97500 / 6400 * 250.5 / 256500, "J per token", "0.01488"),
}
# Ranks are a size: a table has them as a column of their own.
TABLE_NAMES = {"world_size": "ranks"}
FORMATS = ("text", "markdown", "csv", "json", "latex", "html", "tidy")


def log(number: int) -> str:
    event = {name: shown.printed[number] for name, shown in EACH.items()}
    lines = [{"conditions": {"torch": "2.9.1"}}, {"event": "end", **event}]
    return "".join(f"@hpct {json.dumps(line)}\n" for line in lines)


def of_logs(folder: Path) -> list[Path]:
    logs = [folder / "a.log", folder / "b.log"]
    for number, path in enumerate(logs):
        path.write_text(log(number))
    return logs


def of_table(folder: Path) -> list[Path]:
    names = [TABLE_NAMES.get(name, name) for name in EACH]
    rows = [names, *([f"{one.printed[run]:g}" for one in EACH.values()] for run in (0, 1))]
    (folder / "t.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    return [folder / "t.csv"]


def of_records(ending: str, folder: Path) -> list[Path]:
    words = [str(path) for path in of_logs(folder)]
    write_records(collection(words, Search(root=folder / "none")).packs(), folder / f"r.{ending}")
    return [folder / f"r.{ending}"]


INPUTS: dict[str, Callable[[Path], list[Path]]] = {
    "logs": of_logs,
    "table": of_table,
    "csv records": functools.partial(of_records, "csv"),
    "jsonl records": functools.partial(of_records, "jsonl"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Report, dict[str, str]]]:
    """Return the report of each input, in every format."""
    found = {}
    for name, write in INPUTS.items():
        folder = tmp_path_factory.mktemp(name.replace(" ", "-"))
        words = [str(path) for path in write(folder)]
        inputs = report_inputs(words, Search(root=folder / "none"))
        report = build_report(inputs, ReportOptions(wide=True))
        renderers = {form: cast("Render", load("formats", form)) for form in FORMATS}
        found[name] = (report, {form: render(report) for form, render in renderers.items()})
    return found


def documented(page: str) -> set[str]:
    """Return the metrics marked R in the page on events."""
    rows = re.findall(r"^\| (`[^|]+) \| [^|]+? \| R \|", page, re.MULTILINE)
    return {name for cell in rows for name in re.findall(r"`([^`]+)`", cell)}


def test_each_metric_of_the_documentation_and_of_the_code_is_tried() -> None:
    marked = documented((DOCS / "logs-and-tables.md").read_text(encoding="utf-8"))
    assert marked == EACH.keys() | NO_COLUMN
    assert {metric.record for metric in METRICS if metric.record} <= marked
    page = (DOCS / "logs-and-tables.md").read_text(encoding="utf-8")
    table = page.partition("| column | allowed |")[2].partition("\n\n")[0]
    named = {name for name in re.findall(r"`(\w+)`", table) if kind_of(name) == "measure"}
    assert named <= EACH.keys()


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("metric", EACH)
def test_a_metric_reaches_every_format(
    made: dict[str, tuple[Report, dict[str, str]]], name: str, metric: str
) -> None:
    shown = EACH[metric]
    in_all_formats(made[name], shown.key, shown.value, shown.heading, shown.text)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("key", DERIVED)
def test_a_derived_metric_reaches_every_format(
    made: dict[str, tuple[Report, dict[str, str]]], name: str, key: str
) -> None:
    value, heading, text = DERIVED[key]
    in_all_formats(made[name], key, value, heading, text)


def in_all_formats(
    made: tuple[Report, dict[str, str]], key: str, value: float, heading: str, text: str
) -> None:
    report, forms = made
    point = "throughput" if key == "samples_per_second" else key
    stated = json.loads(forms["json"])
    row, run = stated["rows"][-1], stated["runs"][-1]
    found = row[point]["value"] if isinstance(row[point], dict) else row[point]
    assert found == pytest.approx(value)
    assert run[key] == pytest.approx(value)
    in_csv = list(csv.DictReader(io.StringIO(forms["csv"])))[-1]
    assert float(in_csv[point]) == pytest.approx(value)
    in_tables(report, forms, heading, text)
    in_tidy(forms["tidy"], key, value)


def in_tables(report: Report, forms: dict[str, str], heading: str, text: str) -> None:
    columns = [" ".join(column.heading.split()) for column in report.tables[0].columns]
    place = next(i for i, words in enumerate(columns) if words.partition(" [95 %]")[0] == heading)
    assert report.tables[0].rows[-1][place] == text
    # LaTeX has the columns that fit on its page.
    for form in ("text", "markdown", "html"):
        assert text in forms[form], form
        words = re.sub(r"<[^>]+>|[&|]", " ", forms[form])
        for word in heading.replace("[", "").replace("]", "").split():
            assert word.strip("()") in words, (form, word)


def in_tidy(text: str, key: str, value: float) -> None:
    metric = next((metric for metric in METRICS if metric.key == key), None)
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["ranks"] == "4"]
    if metric is None:
        assert float(rows[0][key]) == value
        return
    (row,) = (row for row in rows if row["metric"] == metric.name)
    assert float(row["value"]) == pytest.approx(value)
    assert row["unit"] == metric.unit


def test_a_condition_reaches_the_runs_and_the_provenance(
    made: dict[str, tuple[Report, dict[str, str]]],
) -> None:
    for name in ("logs", "csv records", "jsonl records"):
        _, forms = made[name]
        stated = json.loads(forms["json"])
        assert {run["conditions"]["torch"] for run in stated["runs"]} == {"2.9.1"}
        assert all("2.9.1" in forms[form] for form in ("text", "markdown", "html"))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_collect_has_every_metric_of_an_event_with_its_unit(tmp_path: Path, ending: str) -> None:
    # These are derived, or have their own object.
    names = UNITS.keys() - {"condition", "not_finite", "epoch"}
    values = {name: 0.5 + place / 100 for place, name in enumerate(sorted(names))}
    (tmp_path / "a.log").write_text(f"@hpct {json.dumps({'event': 'end', **values})}\n")
    packs = collection([str(tmp_path / "a.log")], Search(root=tmp_path / "none")).packs()
    write_records(packs, tmp_path / f"r.{ending}")
    text = (tmp_path / f"r.{ending}").read_text()
    rows = (
        list(csv.DictReader(io.StringIO(text)))
        if ending == "csv"
        else [json.loads(line) for line in text.splitlines()]
    )
    found = {row["metric"]: (float(row["value"]), row["unit"]) for row in rows}
    assert found == {name: (value, UNITS[name]) for name, value in values.items()}
