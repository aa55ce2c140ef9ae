"""Records of the generic parser -> the sentence of a report that says so, with an example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpc_train.records.guessed_records import GUESSING
from hpc_train.records.parse_stats import ParseStats

if TYPE_CHECKING:
    from hpc_train.model.record import Record
    from hpc_train.tables.record_arrays import RecordArrays

_LONGEST = 60


def guessed_values(records: RecordArrays, stats: ParseStats) -> str:
    """Return which logs the generic parser read, and how it read the first value; empty if none."""
    from hpc_train.tables.run_level_records import first_of_parser

    found = first_of_parser(records, GUESSING)
    if found is None:
        return ""
    first, runs = found
    more = f" and of {runs - 1} more run{'s' * (runs > 2)}" if runs > 1 else ""
    return (
        f"values of {_name(first)}{more} were read by the generic parser (e.g. line {first.line}: "
        f"{_printed(first, stats)}{first.metric} {first.value:.6g}{_unit(first)}): check them, or "
        "give a pattern (pattern: in the study file, or report --pattern)"
    )


def _name(record: Record) -> str:
    own = record.source.endswith(record.run)
    return record.run if own else f"{record.run}: {record.source}"


def _printed(record: Record, stats: ParseStats) -> str:
    """Return the line of a record, if it was just read."""
    seen = stats.known.get(GUESSING)
    if seen is None or (seen.source, seen.line) != (record.source, record.line):
        return ""
    text = " ".join(seen.text.split())
    return f"`{text[:_LONGEST]}{'…' * (len(text) > _LONGEST)}` as "


def _unit(record: Record) -> str:
    return "" if record.unit == "1" else f" {record.unit}"
