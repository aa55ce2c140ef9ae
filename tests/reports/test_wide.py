from __future__ import annotations

from typing import Any

from hpc_train.model.quality_flag import Flag, FlagCode
from hpc_train.reports.plain_rows import plain_rows
from hpc_train.reports.study_tables import absent_notes, points_table
from hpc_train.tables.runs import run_frame
from hpc_train.tables.speedup import speedup_frame
from tests.reports.finished import finished

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
