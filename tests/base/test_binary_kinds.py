"""Files that are no logs are refused by what they are."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from hpc_train.base.files import BINARY, binary_kind


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"%PDF-1.7\n1 0 obj\n", "PDF: export the results as CSV"),
        (b"PK\x03\x04\x14\0", "zip archive, workbook or checkpoint: "),
        (b"SQLite format 3\0", "SQLite database: "),
        (pickle.dumps({"loss": [1.0] * 9}), BINARY),
        (np.zeros(300).tobytes(), BINARY),
        (Path(sys.executable).read_bytes()[:4096], BINARY),
    ],
)
def test_the_kind_is_named(start: bytes, said: str) -> None:
    assert binary_kind(start).startswith(said)


@pytest.mark.parametrize(
    "text", [b"", b"step 1\n", b"\x1b[32mstep\x1b[0m 1\b\b\r\n" * 9, "Schritt \u00fc".encode()]
)
def test_a_log_is_none(text: bytes) -> None:
    assert binary_kind(text) == ""
