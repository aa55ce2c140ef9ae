"""Bad tables of every kind: refused with place, reason and next command, or read with a caveat."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from hpc_train.errors import HpcTrainError
from hpc_train.model.log_selection import Search
from hpc_train.model.report_options import ReportOptions
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import ReportInputs, report_inputs

HEADER = ("nodes", "gpus_per_node", "global_batch_size", "step_time")
Rows = Sequence[Sequence[Any]]


def as_csv(path: Path, header: Sequence[str], rows: Rows) -> None:
    lines = (";".join(map(str, row)) for row in (header, *rows))
    path.write_text("".join(f"{line}\n" for line in lines))


def as_packed(path: Path, header: Sequence[str], rows: Rows) -> None:
    as_csv(path, header, rows)
    path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def as_lines(path: Path, header: Sequence[str], rows: Rows) -> None:
    objects = (json.dumps(dict(zip(header, row, strict=True))) for row in rows)
    path.write_text("".join(f"{line}\n" for line in objects))


def as_array(path: Path, header: Sequence[str], rows: Rows) -> None:
    objects = [dict(zip(header, row, strict=True)) for row in rows]
    path.write_text(json.dumps(objects, indent=1))


def as_workbook(path: Path, header: Sequence[str], rows: Rows) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (header, *rows):
        # A workbook has no such numbers.
        finite = [c if isinstance(c, str) or math.isfinite(c) else str(c) for c in row]
        sheet.append(finite)
    book.save(path)


def as_parquet(path: Path, header: Sequence[str], rows: Rows) -> None:
    pd.DataFrame(rows, columns=list(header)).to_parquet(path)


WRITE: dict[str, Callable[[Path, Sequence[str], Rows], None]] = {
    "csv": as_csv,
    "csv.gz": as_packed,
    "jsonl": as_lines,
    "json": as_array,
    "xlsx": as_workbook,
    "parquet": as_parquet,
}


def read(*paths: Path) -> ReportInputs:
    return report_inputs([str(path) for path in paths], Search(root=paths[0].parent / "none"))


def refusal(*paths: Path) -> HpcTrainError:
    with pytest.raises(HpcTrainError) as refused:
        read(*paths)
    return refused.value


VALUES: list[tuple[str, Any, str]] = [
    ("NaN", math.nan, "is not a measurement; leave the cell empty"),
    ("infinite", math.inf, "is not a measurement; leave the cell empty"),
    ("negative", -0.5, "-0.5 must be above 0; leave the cell empty"),
    ("zero", 0.0, "must be above 0"),
    ("1e308", 1e308, "1e+308 is too large for a measurement; at most 1e+100"),
    ("comma", "0,5", "'0,5' has a decimal comma; write 0.5 with a point"),
    ("unit", "0.5 s", "'0.5 s' has the unit 's'; write a number alone, the column is in s"),
    ("text", "fast", "'fast' is not a number"),
]


CASES = [
    pytest.param(kind, value, said, id=f"{name}-{kind}")
    for name, value, said in VALUES
    for kind in WRITE
    # NaN is the missing value of pandas.
    if kind == "csv" or name in ("text", "infinite")
]


@pytest.mark.parametrize(("kind", "value", "said"), CASES)
def test_a_bad_value_is_refused_with_its_place(
    tmp_path: Path, kind: str, value: object, said: str
) -> None:
    path = tmp_path / f"t.{kind}"
    first: object = "0.5" if isinstance(value, str) else 0.5
    WRITE[kind](path, HEADER, [(1, 4, 256, first), (2, 4, 256, value)])
    error = refusal(path)
    line = {"jsonl": 2, "json": 8}.get(kind, 3)
    assert error.message.startswith(f"{path}:{line}: step_time: "), error.message
    assert said in error.message
    assert error.hint == "correct this cell"


def caveats(*paths: Path) -> str:
    return "\n".join(build_report(read(*paths), ReportOptions()).summary)


def test_two_tables_in_other_units(tmp_path: Path) -> None:
    rows = [(1, 4, 256, 0.501), (2, 4, 256, 0.271)]
    as_csv(tmp_path / "s.csv", HEADER, [(1, 4, 256, 0.5), (2, 4, 256, 0.27)])
    milliseconds = [(*row[:3], row[3] * 1000) for row in rows]
    as_csv(tmp_path / "ms.csv", HEADER, milliseconds)
    as_csv(tmp_path / "stated.csv", (*HEADER[:3], "step_time [ms]"), milliseconds)
    assert "the unit of a value may be wrong" in caveats(tmp_path / "s.csv", tmp_path / "ms.csv")
    both = (tmp_path / "s.csv", tmp_path / "stated.csv")
    assert "unit" not in caveats(*both)
    values = [record.value for record in read(*both).records.records() if record.unit == "s"]
    assert values == pytest.approx([0.5, 0.27, 0.501, 0.271])
