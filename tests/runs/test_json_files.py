"""A file is on the disk before it takes the name of the old one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hpc_train.runs.json_files import default_results, exclusive, expanded, status_of, write_file
from hpc_train.runs.run import RunFolder
from hpc_train.runs.run_states import has_ended


@contextmanager
def called(*functions: object) -> Iterator[list[object]]:
    """Note the calls of functions of the system, which do what they always do."""
    seen: list[object] = []

    def look(frame: object, event: str, function: object) -> None:
        if event == "c_call" and function in functions:
            seen.append(function)

    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def test_the_content_is_flushed_before_the_rename(tmp_path: Path) -> None:
    """After a power cut the name would else stand for an empty file (man 2 fsync)."""
    path = tmp_path / "study.json"
    path.write_bytes(b"old")
    with called(os.fsync, os.replace, os.rename) as seen:
        write_file(path, [b"ne", b"w"])
    assert seen == [os.fsync, os.replace]
    assert path.read_bytes() == b"new"


def test_the_default_folder_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HPCTRAIN_RESULTS", raising=False)
    assert default_results() == Path("results")
    monkeypatch.setenv("HPCTRAIN_RESULTS", "/scratch/r")
    assert default_results() == Path("/scratch/r")


def test_a_file_with_the_signs_of_a_pattern_in_its_name_is_that_file(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("run[1].out", "run1.out", "run2.out")]
    for file in files:
        file.touch()
    assert expanded(str(files[0])) == files[:1]
    assert expanded(str(tmp_path / "run[12].out")) == files[1:]
    assert expanded(str(tmp_path / "x*")) == []
    assert expanded("-") == [Path("/dev/stdin")]


def test_a_second_holder_says_for_whom_it_waits(tmp_path: Path) -> None:
    lock, said = tmp_path / "study" / ".submit.lock", list[str]()
    with ExitStack() as first:
        first.enter_context(exclusive(lock, said.append))

        def release(text: str) -> None:
            said.append(text)
            first.close()

        with exclusive(lock, release):
            pass
    holder = f"process {os.getpid()} on {os.uname().nodename}"
    assert said == [f"study: waiting for {holder}, which submits, too"]


ADD = """\
import sys
from pathlib import Path
from hpc_train.runs.json_files import exclusive
counter = Path(sys.argv[1])
print("here", flush=True)
for _ in range(300):
    with exclusive(counter.with_name("lock")):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


def test_two_who_count_in_one_file_lose_nothing(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", ADD, str(counter)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    for one in both:
        one.communicate(timeout=240)
    assert counter.read_text() == "600"


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"ended": 2}', '{"started": "x"}'])
def test_a_job_that_says_nothing_readable(tmp_path: Path, content: str | None) -> None:
    run = RunFolder(path=tmp_path)
    if content is not None:
        run.status.write_text(content)
    assert status_of(run) is None
    assert not has_ended(status_of(run))
