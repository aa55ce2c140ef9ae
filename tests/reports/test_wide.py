from __future__ import annotations

from typing import Any

from hpc_train.model.quality_flag import Flag, FlagCode
from hpc_train.reports.plain_rows import plain_rows
from hpc_train.reports.scaling_report import scaling_report
from hpc_train.reports.study_tables import absent_notes, constants, points_table
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.reports.finished import finished, report

NO_LIMITS = {
    f"{name}_{end}": None
    for name in ("karp_flatt", "time_to_train_speedup")
    for end in ("low", "high")
}
LATER: dict[str, Any] = {
    "doubling": 0.97, "doubling_low": 0.9, "doubling_high": 1.05, "karp_flatt": 0.0312,
    "time_to_train_speedup": 1.9, "mfu": 0.412, "gpu_hours_per_million": 0.1234, **NO_LIMITS,
}  # fmt: skip


def points() -> list[dict[str, Any]]:
    study, records = finished()
    return [
        row | (LATER if row["nodes"] == 2 else dict.fromkeys(LATER))
        for row in plain_rows(speedup_frame(run_frame(study, records), study))
    ]


def test_wide_has_what_the_compact_table_leaves_out() -> None:
    compact, wide = points_table(points(), 0.95), points_table(points(), 0.95, wide=True)
    more = {column.key for column in wide.columns} - {column.key for column in compact.columns}
    assert {"regime", "micro_batch", "doubling", "karp_flatt", "mfu", "cv"} <= more
    shown = dict(zip([c.key for c in wide.columns], wide.rows[1], strict=True))
    assert shown["doubling"].text == "0.97 [0.90, 1.05]"
    assert shown["karp_flatt"].text == "0.0312"
    assert shown["mfu"].text == "41.2"
    assert shown["micro_batch"].text == "64"


def test_the_speedup_of_the_training_is_a_column_of_its_own() -> None:
    short = [row | {"accuracy": None, "common_speedup": None} for row in points()]
    keys = [column.key for column in points_table(short, 0.95).columns]
    assert keys.index("time_to_train_speedup") > keys.index("speedup")


def test_a_size_that_a_point_did_not_record_is_not_said_of_all() -> None:
    same = [row | {"nodes": 1, "n_ok": 3} for row in points()]
    assert "1 node" in constants(same)
    assert "nodes" not in {column.key for column in points_table(same, 0.95).columns}
    silent = [same[0] | {"nodes": None}, *same[1:]]
    assert "node" not in constants(silent).replace("per node", "")
    assert "nodes" in {column.key for column in points_table(silent, 0.95).columns}


def test_both_tables_hold_the_same_records() -> None:
    assert points_table(points(), 0.95).records == points_table(points(), 0.95, wide=True).records
    nested = points_table(points(), 0.95).records[1]
    assert nested["doubling"] == {"value": 0.97, "low": 0.9, "high": 1.05}


def test_each_dash_has_a_footnote() -> None:
    notes = list(absent_notes(points_table(points(), 0.95, wide=True), points()))
    assert "--: 16 GPUs under torchrun: no run with a result (1 FAILED, 2 MISSING)." in notes
    assert any("doubling needs the point of half the size" in note for note in notes)
    assert any("not recorded: GPU-h per 1e6 samples, MFU" in note for note in notes)


def test_a_table_without_dashes_has_no_footnote() -> None:
    first = [row | {"flags": [Flag(FlagCode.SHORT, "3 steps")]} for row in points()[:1]]
    assert list(absent_notes(points_table(first, 0.95), first)) == []


def test_the_report_can_be_wide() -> None:
    study, records = finished()
    runs = run_frame(study, records)
    made = scaling_report(study, runs, speedup_frame(runs, study), columns=None)
    assert len(made.tables[0].columns) > len(report().tables[0].columns)
    assert made.tables[0].records == report().tables[0].records
