"""A cache file has the newest content, and a damaged one is an error."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hpc_train.errors import LogParseError
from hpc_train.runs.log_result_cache import read_cache, write_cache


def test_another_content_replaces_the_file_and_the_same_does_not(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "cache.json"
    write_cache(path, b"[1]")
    first = path.stat().st_ino
    write_cache(path, b"[1]")
    assert path.stat().st_ino == first
    write_cache(path, b"[2]")
    assert read_cache(path, msgspec.json.decode) == [2]


def test_a_file_that_is_not_there_is_no_content_and_a_damaged_one_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cache.json"
    assert read_cache(path, msgspec.json.decode) is None
    path.write_bytes(b"[1")
    with pytest.raises(LogParseError, match=r"cache\.json: damaged: "):
        read_cache(path, msgspec.json.decode)
