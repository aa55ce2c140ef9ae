"""What the notes of a table say of its columns and of rows without a batch."""

from __future__ import annotations

from pathlib import Path

from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.header import columns
from hpc_train.imports.runs_from_table import table_notes


def notes(*names: str, rows: tuple[dict[str, str], ...] = ()) -> list[str]:
    """Return the notes after the first, without the name of the table."""
    table = ResultTable(Path("t.csv"), 1, names, tuple((2 + n, ()) for n in range(len(rows))))
    measured = [{name: float(text) for name, text in row.items()} for row in rows]
    distinct = dict.fromkeys(range(len(names)), 0)
    found = list(table_notes(table, columns(table), distinct, measured))
    assert all(note.startswith("t.csv: ") for note in found)
    return [note.removeprefix("t.csv: ") for note in found[1:]]


def test_only_headings_with_a_unit_and_rates_of_another_name_are_explained() -> None:
    assert notes("gpus", "Samples_Per_Second", "loss", "torch") == []
    assert notes("num_gpus", "img/s", "step time [ms]", "loss") == [
        "'img/s' is read as samples_per_second over all ranks; "
        "'step time [ms]' is read as step_time in ms."
    ]


def test_columns_that_are_not_used_are_named_or_numbered_from_1() -> None:
    found = notes("gpus", "", "step_time", "seed", "lr")
    assert found == ["columns that are not used: column 2 (without a name), seed."]


def test_a_column_that_tells_equal_rows_apart_is_used() -> None:
    assert notes("gpus", "Repetition", "rep", "step_time") == []


def test_step_times_are_counted_if_nothing_else_gives_a_rate() -> None:
    alone, other = {"step_time": "1"}, {"epoch_time": "1"}
    both = {"step_time": "1", "global_batch_size": "8"}
    rated = {"step_time": "1", "samples_per_second_per_gpu": "8"}
    assert notes("gpus", "step_time", rows=(both, other, rated)) == []
    (note,) = notes("gpus", "step_time", rows=(alone, both, other, rated, alone))
    assert note.startswith("2 of 5 rows have a step_time without global_batch_size: ")
