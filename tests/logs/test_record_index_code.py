"""The key of an index: the code that reads logs, which a log in an index does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.logs import record_index
from hpc_train.logs.collect import logs_of, records_of, wanted
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.record_index import Index

# The number of records, whether the log was known, and the parsers that were imported.
READ = """
import sys
from pathlib import Path
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.collect import logs_of, records_of, wanted
from hpc_train.logs.record_index import Index
log, kept = map(Path, sys.argv[1:])
look = wanted("auto")
logs, index = logs_of("r", [log]), Index(look, kept.read_bytes())
print(index.knows(logs[0]), sum(1 for _ in records_of(logs, look, ParseStats(), index)))
coded = [f"hpc_train.logs.formats.{name}" for name in ("events", "generic", "mlperf")]
print(*(name for name in coded if name in sys.modules))
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_bytes(b'@hpct {"step":1,"step_time":0.5}\n')
    return path


def kept_of(log: Path) -> bytes:
    look = wanted("auto")
    index = Index(look)
    assert len(list(records_of(logs_of("r", [log]), look, ParseStats(), index))) == 1
    return index.content() or b""


def test_a_log_that_is_known_needs_no_parser(log: Path, tmp_path: Path) -> None:
    kept = tmp_path / "index"
    kept.write_bytes(kept_of(log))
    command = [sys.executable, "-c", READ, str(log), str(kept)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True 1", ""]


def test_other_code_that_reads_logs_has_another_index(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edited(path: Path) -> str:
        return str(path) + "!" * (path.name == "generic.py")

    look, kept = wanted("auto"), kept_of(log)
    (asked,) = logs_of("r", [log])
    assert Index(look, kept).knows(asked)
    record_index._code_of.cache_clear()
    monkeypatch.setattr(record_index, "_state_of_file", edited)
    try:
        assert not Index(look, kept).knows(asked)
    finally:
        record_index._code_of.cache_clear()
