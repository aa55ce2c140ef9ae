"""A run folder in which a file is something else: an answer in time, and the other runs shown."""

import os
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from hpc_train.cli.main import main
from tests.slurm.fake_slurm import programs
from tests.submissions.runs_of import written

STEPS = "".join(
    f'@hpct {{"v":1,"event":"step","rank":0,"step":{n},"step_time":{X},"samples":8,"loss":1.0}}\n'
    for n, X in enumerate((0.11, 0.12, 0.13) * 10, start=1)
)
GOOD, BAD = "1-good-r1", "2-bad-r1"
FILES = (
    "run.json", "status.json", "submission.json", "job.sbatch", "cut_off", "records.jsonl",
    "transport.json", "diagnosis.json", "logs", "logs/job.out",
    "logs/rank-0.out", "../study.json", "../exclude.yaml", "../.queue/1.lock", "../.queue/1.log",
    "../.submit.lock",
)  # fmt: skip
# Read where the logs are gone.
KEPT = ("records.jsonl", "transport.json", "diagnosis.json")
COMMANDS = ("status", "report", "collect", "diagnose", "logs", "cancel", "retry")
# A command that hangs is stopped after so long.
SECONDS = 240
OLD = b'{"schema": 1, "run_id": "'


def _link(path: Path, target: str) -> None:
    path.symlink_to(target)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        # The name of a socket has at most 108 bytes.
        before = Path.cwd()
        os.chdir(path.parent)
        made.bind(path.name)
        os.chdir(before)


def _holds(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


KINDS: dict[str, Callable[[Path], None]] = {
    "fifo": os.mkfifo,
    "socket": _socket,
    "directory": Path.mkdir,
    "loop": lambda path: _link(path, path.name),
    "dangling": lambda path: _link(path, "nowhere"),
    "zero": lambda path: _link(path, "/dev/zero"),
    "root": lambda path: _link(path, "/"),
    "empty": Path.touch,
    "cut": _holds(OLD),
    "nul": _holds(b"\0" * 100_000),
    "latin": _holds(b'{"schema": "\xff\xfe"}'),
    "numbers": _holds(b'{"started": 1e308, "ended": -1e308, "exit_code": 1e30}'),
    "early": _holds(b'{"started": 0.0, "restart_count": -4611686018427387905}'),
    "deep": _holds(b"[" * 100_000),
    "deep-object": _holds(b'{"plan":' * 100_000),
    "huge": _huge,
}
if os.geteuid() == 0:
    KINDS["device"] = lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))


class Late(BaseException):
    """What no handler of errors takes for one of the file system."""


@contextmanager
def in_time(what: str) -> Iterator[None]:
    def late(*_: object) -> None:
        raise Late(what)

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def called(*words: str) -> int:
    """Call the command in this process; whatever is no exit is a traceback for the user."""
    with in_time(" ".join(words)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["hpctrain", *words])
        with pytest.raises(SystemExit) as left:
            main()
    return int(left.value.code or 0)


def home_with(tmp_path: Path, name: str, make: Callable[[Path], None], *, logs: bool) -> Path:
    """Return a job of two runs, of which one has something else in the place of a file."""
    home = tmp_path / "results" / "j"
    for run_id in (GOOD, BAD):
        written(home, run_id, STEPS)
    if not logs:
        (home / BAD / "logs" / "rank-0.out").unlink()
        (home / BAD / "logs").rmdir()
    path = home / BAD / name
    if ".queue" in name:
        (home / BAD / "status.json").unlink()
    if path.is_dir():
        for entry in path.iterdir():
            entry.unlink()
        path.rmdir()
    elif path.parent.is_dir():
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir()
    make(path)
    return home


# Each file as a pipe, those of data as text that never ends, and two files as each kind.
CASES = dict.fromkeys(
    [
        *((name, "fifo") for name in FILES),
        *((name, "deep") for name in FILES if Path(name).suffix in (".json", ".yaml")),
        *((name, kind) for name in ("run.json", "records.jsonl") for kind in KINDS),
    ]
)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_every_command_answers(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    # A file that is kept is written where there are logs.
    logs_too = {True, False} if kind == "fifo" else {False}
    for logs in logs_too if name in KEPT else {True}:
        home = home_with(tmp_path / str(logs), name, KINDS[kind], logs=logs)
        for command in COMMANDS:
            word = f"{home}/{BAD}" if command == "logs" else str(home)
            code = called(command, word, "--results", str(home.parent))
            out, err = capfd.readouterr()
            assert code in (0, 1, 2, 3), (command, code)
            assert "Traceback" not in out + err
            if command == "status":
                assert GOOD in out, err
                assert BAD in out, err
            if command == "report" and not name.startswith(".."):
                assert code in (0, 3), err
                assert "2 runs" in out or "1 of 2" in out or "2 of 2" in out, out


def test_no_escape_of_the_terminal_comes_out_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    bad = "\x1b]52;c;aGk=\x07\x1b[31mred\x1b[0m\x9b2J\u202e\x1bP+q\x1b\\"
    home = tmp_path / "results" / "j"
    run = written(home, BAD, STEPS + f"{bad}\r 1%\r 2%\nRuntimeError: {bad}\n", exit_code=1)
    failure = {"rank": 0, "host": f"n{bad}", "exit_code": 1}
    status = {"started": 1e9, "ended": 1e9 + 9, "exit_code": 1, "host": bad, "failure": failure}
    run.folder.status.write_bytes(msgspec.json.encode(status))
    (run.folder.path / "first_failure.log").write_text(bad)
    for words in (*COMMANDS, "logs -f", "status --watch"):
        word = f"{home}/{BAD}" if words.startswith("logs") else str(home)
        called(*words.split(), word, "--results", str(home.parent))
        out, err = capfd.readouterr()
        assert not set("\x1b\x07\x9b\u202e\r") & set(out + err), words
        if words.startswith("logs"):
            assert "red" in out


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")
@pytest.mark.parametrize("writer", [0, 12345])
def test_a_file_of_another_user_chooses_no_slurm(
    writer: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = programs(tmp_path / "bin", monkeypatch)
    make("squeue", f'echo "$SLURM_CONF" "$SLURM_CLUSTERS" >>{tmp_path}/asked; exit 1')
    own, conf = tmp_path / "mine", tmp_path / "conf"
    own.touch()
    conf.touch()
    monkeypatch.setenv("SLURM_CONF", str(own))
    home = home_with(tmp_path, "status.json", lambda path: None, logs=True)
    submission = home / BAD / "submission.json"
    at = {"conf": str(conf), "clusters": "a"}
    submission.write_bytes(
        msgspec.json.encode(
            {"executor": "slurm", "native_id": "7", "submitted": "2026-11-29", "cluster": at}
        )
    )
    os.chown(submission, writer, writer)
    called("status", str(home), "--results", str(home.parent))
    wanted = str(own) if writer else f"{conf} a"
    assert {line.strip() for line in (tmp_path / "asked").read_text().splitlines()} == {wanted}


@pytest.mark.parametrize("kind", ["fifo", "deep", "cut", "numbers", "early"])
@pytest.mark.parametrize("name", ["run.json", "status.json", "submission.json"])
def test_what_is_wrong_is_a_named_problem_of_that_run(
    name: str, kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    home = home_with(tmp_path, name, KINDS[kind], logs=True)
    called("status", str(home), "--json", "--results", str(home.parent))
    found = {run["run"]: run for run in msgspec.json.decode(capfd.readouterr().out)["runs"]}
    assert found[GOOD]["problem"] == ""
    assert found[BAD]["problem"].startswith(name)


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that anybody may look into; that of a test is for its user alone."""
    with tempfile.TemporaryDirectory(prefix="hpctrain-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
@pytest.mark.parametrize("name", ["", "run.json", "logs", "records.jsonl", "../study.json"])
def test_what_another_user_may_not_read_is_a_problem_of_that_run_alone(
    name: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("HOME", str(elsewhere))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(elsewhere / "none"))
    home = home_with(elsewhere, name or "cut_off", Path.touch, logs=True)
    # Everything is imported by then: the other user may not see this Python.
    for command in COMMANDS[:5]:
        called(command, f"{home}/{GOOD}", "--results", str(home.parent))
    capfd.readouterr()
    (home / BAD / name).chmod(0)
    os.seteuid(65534)
    try:
        for command in COMMANDS[:5]:
            word = f"{home}/{BAD}" if command == "logs" else str(home)
            code = called(command, word, "--results", str(home.parent))
            out, err = capfd.readouterr()
            assert code in (0, 1, 2, 3), (command, code)
            assert "Traceback" not in out + err
            if command == "status":
                assert GOOD in out, err
                assert BAD in out, err
            if command == "report" and not name.startswith(".."):
                assert code in (0, 3), err
    finally:
        os.seteuid(0)
