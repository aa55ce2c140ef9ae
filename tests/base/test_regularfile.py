"""Nothing waits for a writer, reads a device or follows a loop."""

import os
from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.base.files import is_there, open_regular, read_regular
from hpc_train.diagnosis.diagnose import diagnose_logs
from hpc_train.diagnosis.diagnosis import JobEnd
from hpc_train.logs.collect import collect
from hpc_train.logs.log_file import log_files
from hpc_train.logs.read_log import ParseStats

LINE = '@hpct {"event":"step","rank":0,"step":1,"step_time":0.1,"samples":8}\n'


def strange(folder: Path) -> dict[str, Path]:
    made = {name: folder / f"{name}.out" for name in ("fifo", "loop", "gone", "zero", "inside")}
    os.mkfifo(made["fifo"])
    made["loop"].symlink_to(made["loop"])
    made["gone"].symlink_to("nowhere")
    made["zero"].symlink_to("/dev/zero")
    made["inside"].mkdir()
    (made["inside"] / "again.out").symlink_to(folder)
    return made


@pytest.mark.parametrize(
    ("name", "said"),
    [("fifo", "a FIFO"), ("loop", "symbolic links"), ("gone", "No such file"),
     ("zero", "a character device"), ("inside", "Is a directory")],
)  # fmt: skip
def test_what_is_no_regular_file_is_refused_at_once(name: str, said: str, tmp_path: Path) -> None:
    path = strange(tmp_path)[name]
    assert is_there(path)
    with pytest.raises(OSError, match=said):
        open_regular(path)
    if name != "inside":
        with pytest.raises(LogParseError, match=said):
            list(collect("run", [path]))
        with pytest.raises(LogParseError, match=said):
            diagnose_logs([path], ["log"], JobEnd())


def test_where_nobody_can_look_nothing_is_said_to_be_absent(tmp_path: Path) -> None:
    made = strange(tmp_path)
    assert is_there(made["loop"] / "x")
    assert not is_there(made["inside"] / "x")
    assert not is_there(made["fifo"] / "x")


def test_a_folder_of_logs_with_strange_entries_is_read_without_them(tmp_path: Path) -> None:
    loop = strange(tmp_path)["loop"]
    (tmp_path / "a.out").write_text(LINE)
    assert log_files([tmp_path]) == [tmp_path / "a.out", loop]
    census = ParseStats()
    found = list(collect("run", [tmp_path], census=census))
    assert {record.source for record in found} == {str(tmp_path / "a.out")}
    (said,) = census.failed.values()
    assert said.startswith(f"{loop}: cannot be read: Too many levels")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(OSError, match="too large"):
        read_regular(path)
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(OSError, match="5 bytes, at most 4"):
        read_regular(path, 4)
