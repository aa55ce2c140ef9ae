"""Files that are no logs are refused by what they are, with what to do."""

from __future__ import annotations

import io
import pickle
import sqlite3
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hpc_train.base.file_kinds import BINARY, binary_kind

OFFICE = ("[Content_Types].xml", "_rels/.rels")


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "<x/>")
    return buffer.getvalue()


def tarred() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("run.log"))
    return buffer.getvalue()


def array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


def database(path: Path) -> bytes:
    with sqlite3.connect(path) as connection:
        connection.execute("create table runs (nodes)")
    connection.close()
    return path.read_bytes()


KINDS = [
    ("a.pdf", b"%PDF-1.7\n1 0 obj\n", "PDF: "),
    ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG image: "),
    ("a.h5", b"\x89HDF\r\n\x1a\n\0\0", "HDF5 file: "),
    ("a.zip", zipped("run.log"), "zip archive: unpack it"),
    ("a.xlsx", zipped(*OFFICE, "xl/workbook.xml"), "Excel workbook: save the sheet"),
    ("a.pt", zipped("weights/data.pkl", "weights/version"), "PyTorch checkpoint: it is never"),
    ("a.npy", array(), "NumPy array: "),
    ("a.tar", tarred(), "tar archive: unpack it"),
    ("a.pkl", pickle.dumps({"loss": [1.0] * 9}), "Python pickle: it is never loaded"),
    ("a.pkl", pickle.dumps([1.0] * 9, protocol=2), "Python pickle: it is never loaded"),
    ("a.html", b" <!DOCTYPE html>\n<title>Run</title>", "HTML page: "),
    (
        "a.xls",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99,
        "Microsoft Office 97 document: save",
    ),
    ("a.bin", b"\1\2" * 99, BINARY),
]


@pytest.mark.parametrize(("name", "content", "said"), KINDS)
def test_a_kind_is_named(name: str, content: bytes, said: str) -> None:
    assert binary_kind(content[:4096], Path(name).suffix).startswith(said)


def test_a_database_and_a_program_are_named(tmp_path: Path) -> None:
    assert binary_kind(database(tmp_path / "a.db")).startswith("SQLite database: ")
    with Path(sys.executable).open("rb") as program:
        assert binary_kind(program.read(4096)) == BINARY


@pytest.mark.parametrize(
    "text",
    [b"", b"x", b"iter 1: loss 2.0\n", b"step 1 <html>\n", b"\x1b[31mred\x1b[0m\n", b"xyz" * 9],
)
def test_text_is_no_kind(text: bytes) -> None:
    assert binary_kind(text) == ""
