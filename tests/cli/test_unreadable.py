"""Words that name no log, and logs that hold nothing: the same answer from every command."""

import bz2
import gzip
import hashlib
import lzma
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import hpc_train
from tests.conftest import Hpctrain

STEP = b"iter 1: loss 2.0, time 100.0ms, mfu 30%\n"
COMMANDS = ("collect", "diagnose", "report")


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, hpctrain: Hpctrain) -> None:
    Path("train.log").write_bytes(STEP)
    Path("empty.log").touch()
    Path("weights.pt").write_bytes(hashlib.shake_128(b"weights").digest(50_000))
    Path("cut.log.gz").write_bytes(gzip.compress(STEP)[:30])
    Path("other.log").write_text("iter 10 of 90\n")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("trian.log", "trian.log: no such file; did you mean 'train.log'?"),
        ("no/train.log", "no/train.log: no such file; there is no folder no"),
        ("rank-*.log", "rank-*.log: no file matches this pattern"),
        ("nothing", "unknown run or study 'nothing'"),
        ("empty.log", "empty.log: empty"),
        ("weights.pt", "weights.pt: is a binary file, not text"),
        ("cut.log.gz", "cut.log.gz: cannot be read: Compressed file ended"),
    ],
)
def test_refused_with_one_reason(hpctrain: Hpctrain, command: str, word: str, said: str) -> None:
    done = hpctrain(command, word)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hpctrain: ") and said in done.stderr
    assert done.stderr.count(said) == 1


@pytest.mark.process
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, zstandard.compress])
def test_a_pipe_may_be_packed(pack: Callable[[bytes], bytes]) -> None:
    command = [sys.executable, "-m", "hpc_train", "collect", "-"]
    done = subprocess.run(command, input=pack(STEP * 3), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"9 records of 1 run\n" in done.stderr


@pytest.mark.parametrize("command", ["collect", "report"])
def test_one_of_several_logs_is_a_partial_result(hpctrain: Hpctrain, command: str) -> None:
    Path("job").mkdir()
    for rank in range(3):
        Path(f"job/rank-{rank}.out").write_bytes(b"\x01\x02" * 4000)
    for rank in (1, 2):
        events = (f'@hpct {{"step": {n}, "step_time": 1, "samples": 8}}\n' for n in range(30))
        Path(f"job/rank-{rank}.out").write_text("".join(events))
    done = hpctrain(command, "job")
    assert (done.returncode, bool(done.stdout)) == (3, True)
    assert "job/rank-0.out: is a binary file, not text" in done.stderr


@pytest.mark.parametrize(
    "options",
    [["collect"], ["diagnose", "--json"], ["report"]],
    ids=" ".join,
)
def test_name_that_is_no_utf8(hpctrain: Hpctrain, options: list[str]) -> None:
    folder = Path(os.fsdecode(b"old\xe9"))
    folder.mkdir()
    for rank in (0, 1):
        (folder / os.fsdecode(b"caf\xe9-rank-%d.log" % rank)).write_bytes(STEP)
    done = hpctrain(*options, str(folder))
    assert "Traceback" not in done.stderr
    assert done.returncode == hpctrain(*options, "train.log").returncode
    assert options == ["report"] or "xe9" in done.stdout + done.stderr
    assert hpc_train.collect([folder])["source"].tolist()[0] == r"old\xe9/caf\xe9-rank-0.log"


class Harmful:
    """Unpickling it writes a file."""

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Path]]:
        return Path.touch, (Path("loaded"),)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.pdf", b"%PDF-1.7\n1 0 obj\n", "a.pdf: PDF: export the results as CSV"),
        ("a.pkl", pickle.dumps([Harmful()]), "a.pkl: is a binary file, not text"),
        ("a.db.gz", gzip.compress(b"SQLite format 3\0"), "a.db.gz: SQLite database: export"),
    ],
    # The content differs between the processes of a run: gzip writes the time.
    ids=("pdf", "pickle", "database"),
)
def test_each_command_names_the_kind(
    hpctrain: Hpctrain, command: str, name: str, content: bytes, said: str
) -> None:
    Path(name).write_bytes(content)
    done = hpctrain(command, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count(said) == 1
    assert not Path("loaded").exists()
