"""Random studies by the command's own way, against a second computation that shares no code."""

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.write_report import render_report
from tests.scaling.recomputed import recomputed

KEY = ("nodes", "gpus_per_node", "tasks_per_node")
MEASURES = (
    "samples_per_second", "tokens_per_second", "epoch_time", "time_to_train", "step_time",
    "accuracy", "mfu", "learning_rate", "steps", "samples_seen", "wall_s",
)  # fmt: skip
COLUMNS = ("launcher", "torch", *KEY, "global_batch_size", *MEASURES, "state", "exclude")
SIZES = ((1, 1, 1), (1, 2, 2), (1, 4, 4), (2, 2, 2), (2, 4, 4), (2, 4, 1), (3, 4, 4), (4, 4, 4),
         (6, 4, 4), (16, 4, 4))  # fmt: skip
Row = dict[str, Any]


def study(seed: int) -> list[Row]:
    """One row for each job: other sizes, numbers and gaps with each seed."""
    chance = random.Random(seed)  # noqa: S311
    weak, wanted = chance.random() < 0.5, chance.sample(MEASURES, 7)
    wanted.append(chance.choice(MEASURES[:4]))
    sizes = sorted(chance.sample(SIZES, chance.randint(1, 6)))
    scale = chance.choice((1e-9, 1.0, 1e9, 1e15))
    rows = []
    for launcher in ("srun", "torchrun")[: chance.randint(1, 2)]:
        for place, size in enumerate(sizes):
            for repetition in range(chance.randint(1, 5)):
                row = job(chance, size, weak, wanted, scale)
                if (place, repetition) != (0, 0) and chance.random() < 0.25:
                    row |= chance.choice(
                        ({"state": "failed"}, {"exclude": "hot"}, {"state": "timeout"})
                    )
                rows.append({"launcher": launcher, **row})
    chance.shuffle(rows)
    return rows


def job(
    chance: random.Random, size: tuple[int, ...], weak: bool, wanted: Sequence[str], scale: float
) -> Row:
    ranks = size[0] * size[2]
    batch = 48 * ranks if weak else 48
    rate = scale * (size[0] * size[1]) ** 0.9 * chance.gauss(1, 0.02)
    values = {
        "samples_per_second": rate,
        "tokens_per_second": 1024 * rate * chance.gauss(1, 0.01),
        "epoch_time": chance.uniform(0.9, 1.1) / size[0],
        "time_to_train": chance.uniform(9, 11) / size[0],
        "step_time": batch / rate * chance.gauss(1, 0.01),
        "accuracy": chance.uniform(0.7, 0.8),
        "mfu": chance.uniform(0.3, 0.4),
        "learning_rate": 0.1,
        "steps": chance.randint(100, 110),
        "samples_seen": chance.randint(1000, 1100),
        "wall_s": chance.uniform(100, 200),
    }
    known = {k: v if k in wanted and chance.random() < 0.97 else None for k, v in values.items()}
    if all(known[name] is None for name in MEASURES[:4]):
        known[wanted[-1]] = values[wanted[-1]]
    return dict(zip(KEY, size, strict=True)) | known | {
        "global_batch_size": batch, "state": "", "exclude": "",
    }  # fmt: skip


def reported(path: Path, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Write a table of jobs, and return the rows of its report in JSON."""
    names = [name for name in COLUMNS if name in rows[0]]
    lines = [",".join(names)]
    for row in rows:
        cells = ["" if row[name] is None else repr(row[name]) for name in names]
        lines.append(",".join(cell.strip("'") for cell in cells))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = build_report(report_inputs([str(path)], Search(root=path.parent / "none")))
    points: list[dict[str, Any]] = json.loads(render_report(found, "json"))["rows"]
    return [flat(point) for point in points]


def flat(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return `x`, `x_low` and `x_high` for what JSON keeps together."""
    found: dict[str, Any] = defaultdict(lambda: None, point)
    for name in ("speedup", "efficiency", "doubling", "karp_flatt"):
        limits = found.get(name) or {"value": None, "low": None, "high": None}
        found |= {name: limits["value"], f"{name}_low": limits["low"],
                  f"{name}_high": limits["high"]}  # fmt: skip
    found["samples_per_second"] = point.get("throughput", {}).get("value")
    found["samples_per_second_per_rank"] = point.get("throughput_per_rank")
    return found


@pytest.mark.parametrize("seed", range(24))
def test_every_number_of_a_random_study(seed: int, tmp_path: Path) -> None:
    rows = study(seed)
    points = reported(tmp_path / "jobs.csv", rows)
    wanted = recomputed(rows)
    assert len(points) == len(wanted)
    for point in points:
        key = (point["series"].removeprefix("launcher="), *(point[name] for name in KEY))
        for name, value in wanted[key].items():
            assert point[name] == (
                None if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)
            ), (key, name)


def test_a_rate_per_gpu_is_of_all_gpus_however_many_processes_drive_them(tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    head = "nodes,gpus_per_node,tasks_per_node,samples_per_second_per_gpu"
    table.write_text(f"{head}\n1,4,1,10\n2,4,4,9\n4,0,2,8\n", encoding="utf-8")
    found = build_report(report_inputs([str(table)], Search(root=tmp_path / "none")))
    rates = [row["samples_per_second"] for row in found.run_rows]
    assert rates == pytest.approx([40, 72, 64])


@pytest.mark.parametrize("odd", [{}, {"torch": "2.9"}, {"global_batch_size": 50}])
@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_is_left_out_changes_no_number_of_the_others(
    seed: int, odd: Row, tmp_path: Path
) -> None:
    """Leaving a run out is as if it had never been there, but for what was asked for and spent."""
    rows = [{"torch": "2.8", **row} for row in study(seed) if not row["exclude"]]
    at = random.Random(seed).randrange(len(rows))  # noqa: S311
    extra = {**rows[at], "samples_per_second": 1.0, "exclude": "hot", "state": "", **odd}
    without = reported(tmp_path / "jobs.csv", rows)
    points = reported(tmp_path / "jobs.csv", [*rows[: at + 1], extra, *rows[at + 1 :]])
    for point in (*without, *points):
        for name in ("n_submitted", "not_ok", "gpu_hours_spent"):
            point.pop(name, None)
        point["series"] = point["series"].replace(", torch=2.8", "")
    # A run with other conditions is a row of its own, without a number.
    assert [point for point in points if ", torch=2.9" not in point["series"]] == without
