"""Files that are no logs are refused by what they are, with what to do."""

from __future__ import annotations

import io
import pickle
import sqlite3
import sys
import tarfile
import zipfile
import zlib
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


def arrays(*, archive: bool) -> bytes:
    buffer = io.BytesIO()
    if archive:
        np.savez(buffer, loss=np.zeros(3))
    else:
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
    ("a.docx", zipped(*OFFICE, "word/document.xml"), "Word document: "),
    ("a.ods", zipped("mimetype", "content.xml"), "OpenDocument file: "),
    ("a.numbers", zipped("Index/Document.iwa"), "Numbers document: "),
    ("a.pt", zipped("weights/data.pkl", "weights/version"), "PyTorch checkpoint: it is never"),
    ("a.npz", arrays(archive=True), "NumPy archive (.npz): "),
    ("a.npy", arrays(archive=False), "NumPy array: "),
    ("a.tar", tarred(), "tar archive: unpack it"),
    ("a.pkl", pickle.dumps({"loss": [1.0] * 9}), "Python pickle: it is never loaded"),
    ("a.pkl", pickle.dumps([1.0] * 9, protocol=2), "Python pickle: it is never loaded"),
    ("a.html", b" <!DOCTYPE html>\n<title>Run</title>", "HTML page: "),
    ("4b825dc6", zlib.compress(b"tree 0\0"), "object of a git repository: "),
    ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, "Excel 97 workbook: save it as"),
    ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 99, "Word 97 document: "),
    ("a.feather", b"ARROW1\0\0" + b"\1" * 9, "Feather or Arrow file: write it as Parquet"),
    ("a.orc", b"ORC\x11\0\0", "ORC file: "),
    ("a.avro", b"Obj\x01\x04\x14", "Avro file: "),
    ("a.mat", b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "MATLAB file: "),
    ("a.bin", b"\1\2" * 99, BINARY),
]


@pytest.mark.parametrize(("name", "content", "said"), KINDS)
def test_a_kind_is_named(name: str, content: bytes, said: str) -> None:
    assert binary_kind(content[:4096], Path(name).suffix).startswith(said)


def test_a_database_and_a_program_are_named(tmp_path: Path) -> None:
    assert binary_kind(database(tmp_path / "a.db")).startswith("SQLite database: ")
    with Path(sys.executable).open("rb") as program:
        assert binary_kind(program.read(4096)).startswith("program or library (ELF): ")


@pytest.mark.parametrize(
    "text",
    [b"", b"x", b"iter 1: loss 2.0\n", b"step 1 <html>\n", b"\x1b[31mred\x1b[0m\n", b"xyz" * 9],
)
def test_text_is_no_kind(text: bytes) -> None:
    assert binary_kind(text) == ""
