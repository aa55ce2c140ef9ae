"""CONTRIBUTING's recipe for a metric: with its entries alone, every report and gate has them."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.command_line import started

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
RECIPE = re.compile(r"^ *```python\n( *Metric\(\n.*?)\n *```", re.MULTILINE | re.DOTALL)
END = "\n)  # fmt: skip\nRUN_METRICS"
# Frames per second on 1, 2 and 4 ranks, as a run and a repetition state them.
SPEEDS = {1: (100.0, 101.0), 2: (190.0, 191.0), 4: (200.0, 204.0)}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package with the recipe's entries."""
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "hpc_train", copy / "hpc_train")
    for name in ("pyproject.toml", "templates", "site_profiles"):
        (copy / name).symlink_to(ROOT / name)
    registry = copy / "hpc_train" / "model" / "metrics.py"
    before = registry.read_text(encoding="utf-8")
    entries = RECIPE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(entries) == 2
    assert before.count(END) == 1
    registry.write_text(before.replace(END, "".join(f"\n{entry}," for entry in entries) + END))
    return copy


def logs(folder: Path, factor: float = 1.0) -> None:
    folder.mkdir()
    for ranks, speeds in SPEEDS.items():
        for repetition, speed in enumerate(speeds):
            event = {"event": "end", "world_size": ranks, "frames_per_second": factor * speed,
                     "residual": 300 + ranks, "scope": "global"}  # fmt: skip
            (folder / f"{ranks}-{repetition}.log").write_text(f"@hpct {json.dumps(event)}\n")


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


class Made(NamedTuple):
    """A folder with a report in every form, and what the commands printed."""

    folder: Path
    text: str
    compared: str
    checked: str


@pytest.fixture(scope="module")
def made(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    logs(folder / "logs")
    logs(folder / "faster", 1.25)
    sizes = {f"logs/{ranks}-{i}.log": {"ranks": ranks} for ranks in SPEEDS for i in (0, 1)}
    stated = {"gates": {"efficiency": 0.75}, "points": sizes}
    (folder / "points.yaml").write_text(json.dumps(stated))
    lines = (
        "report logs -o report",
        "report logs",
        "compare logs faster -f json",
        "report points.yaml -f json --check",
    )
    done = started(*lines, folder=folder, package=checkout).values()
    assert [one.returncode for one in done] == [0, 0, 0, 1], done
    return Made(folder, *(one.stdout for one in done if not one.stdout.startswith("report/")))


def test_text_and_markdown_show_a_column_of_each(made: Made) -> None:
    assert "speedup by frame throughput" in made.text
    heads = " ".join(made.text.partition("Points")[2].partition("───")[0].split())
    assert "frames/s" in heads
    assert "residual" in heads
    assert re.search(r"^ *2 .*\b190\.5 .*\b302\.0\b", made.text, re.MULTILINE)
    markdown = (made.folder / "report" / "report.md").read_text()
    assert re.search(r"^\| 2 \|.* 190\.5 \|.* 302\.0 \|", markdown, re.MULTILINE)


def test_the_page_has_them_of_points_and_of_runs(made: Made) -> None:
    page = (made.folder / "report" / "report.html").read_text()
    assert page.count("frames per second") > 0
    assert re.search(r"<th[^>]*>residual of a run</th>", page)
    assert "throughput [frames/s]" in page


def test_csv_json_and_tidy_have_their_values(made: Made) -> None:
    points = rows(made.folder / "report" / "points.csv")
    # The harmonic mean of 190 and 191, and the mean of two equal residuals.
    assert float(points[1]["frames_per_second"]) == pytest.approx(2 / (1 / 190 + 1 / 191))
    assert [float(row["residual"]) for row in points] == [301, 302, 304]
    report = json.loads((made.folder / "report" / "report.json").read_text())
    assert {run["residual"] for run in report["runs"]} == {301, 302, 304}
    assert report["rows"][1]["speedup"]["value"] == pytest.approx(
        ((190 * 191) / (100 * 101)) ** 0.5
    )
    tidy = rows(made.folder / "report" / "tidy.csv")
    units = {(row["metric"], row["unit"], row["better"]) for row in tidy}
    assert {("residual", "1", "lower"), ("frames_per_second", "1/s", "higher")} <= units


def test_compare_is_by_the_new_basis(made: Made) -> None:
    compared = json.loads(made.compared)["rows"]
    assert {row["basis"] for row in compared} == {"frame throughput"}
    assert [row["ratio"]["value"] for row in compared] == pytest.approx([1.25] * 3)


def test_gates_decide_by_the_new_basis(made: Made) -> None:
    rows = [row for row in json.loads(made.checked)["gates"] if row["gate"] == "efficiency"]
    gates = [(row["where"], row["outcome"]) for row in rows]
    assert gates == [("2 ranks", "met"), ("4 ranks", "not met")]
