"""Tables of results as files: the kinds, compressed or not, and what is none."""

import gzip
from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.table_file import is_result_table, read_table

CSV = b"nodes,step_time\n1,0.5\n2,0.3\n"


def test_the_bytes_decide_whether_a_file_is_compressed(tmp_path: Path) -> None:
    for name, raw in (("a.csv", gzip.compress(CSV, mtime=0)), ("b.csv.gz", CSV)):
        (tmp_path / name).write_bytes(raw)
        assert is_result_table(tmp_path / name)
        assert len(read_table(tmp_path / name).rows) == 2


@pytest.mark.parametrize("cut", [3, 12, -1])
def test_damaged_data_are_named(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(CSV * 1000, mtime=0)[:cut])
    assert is_result_table(path)
    with pytest.raises(LogParseError, match=r"t\.csv\.gz: (?:cannot be read|empty)"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "content", "is_table"),
    [
        ("t.json", b'[\n {"nodes": 1, "step_time": 0.5}]', True),
        ("t.ndjson", b'{"params": {"nodes": 1}, "metrics": {"step_time": 0.5}}', True),
        ("t.jsonl", b'{"world_size": 8, "lr": 0.1}\n{"step": 1, "loss": 2}', False),
        ("t.jsonl", b'{"nodes": 1, "step": 1, "step_time": 0.5}', True),
        ("t.jsonl", b'{"epoch": 1, "step_time": 0.5}', False),
        ("t.json", b"{not json", False),
        ("t.json", b"[1, 2]", False),
        ("t.json", b"", False),
        ("t.json", b"[" * 100_000, False),
        ("t.log", CSV, False),
        ("metrics.csv.gz", CSV, False),
        ("t.xlsx", b"", True),
    ],
)
def test_a_table_is_known_by_extension_and_header(
    tmp_path: Path, name: str, content: bytes, *, is_table: bool
) -> None:
    (tmp_path / name).write_bytes(content)
    assert is_result_table(tmp_path / name) is is_table


def test_a_compressed_workbook_is_refused_by_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx.gz"
    path.write_bytes(gzip.compress(b"PK\x03\x04", mtime=0))
    with pytest.raises(LogParseError) as caught:
        read_table(path)
    assert caught.value.message == f"{path}: compressed Excel workbook"
    assert caught.value.hint == "unpack it: .xlsx is a zip"
