import os
import signal
import socket
import time
from pathlib import Path

import pytest

from tests.submissions.waiting import wait_for
from tests.trainer.launching import finish, meeting_point, start

pytestmark = pytest.mark.process

SCRIPT = """
import os, signal, sys, time
from hpc_train.trainer import WorkloadError
from hpc_train.trainer.spawn_ranks import run_ranks
def main():
    print("rank", *map(os.environ.get, ("RANK", "LOCAL_RANK", "WORLD_SIZE")))
    print("note", file=sys.stderr)
    {body}
    return 0
if __name__ == "__main__":
    code = run_ranks(main)
    assert "torch" not in sys.modules
    sys.exit(code)
"""
IN_TURN = """
    rank, folder = os.environ["RANK"], "{folder}/"
    open(folder + "pids/" + rank, "w").write(str(os.getpid()))
    while not os.path.exists(folder + rank):
        time.sleep(0.02)
    sys.exit(7 + int(rank))
"""
SECOND = 'if os.environ["RANK"] == "1":\n        {}\n    time.sleep(600)'


def script(tmp_path: Path, body: str = "") -> Path:
    path = tmp_path / "ranks_script.py"
    path.write_text(SCRIPT.replace("{body}", body))
    return path


def test_nothing_set_runs_here(tmp_path: Path) -> None:
    assert finish(start((script(tmp_path),))) == (0, "rank None None None\n", "note\n")


def test_second_node_and_one_log_per_rank(tmp_path: Path) -> None:
    (tmp_path / "rank-2.out").write_text("kept\n")
    node = {"LOCAL_WORLD_SIZE": 2, "NNODES": 2, "NODE_RANK": 1, "WORLD_SIZE": 4}
    run = start((script(tmp_path),), **node, **meeting_point(), HPCTRAIN_LOG_DIR=tmp_path)
    assert finish(run) == (0, "", "")
    assert (tmp_path / "rank-2.out").read_text() == "kept\nrank 2 0 4\nnote\n"
    assert (tmp_path / "rank-3.out").read_text() == "rank 3 1 4\nnote\n"


def test_node_beyond_the_world(tmp_path: Path) -> None:
    node = {"LOCAL_WORLD_SIZE": 2, "NODE_RANK": 1, "WORLD_SIZE": 2}
    code, _, err = finish(start((script(tmp_path),), **node, **meeting_point()))
    assert code == 1
    assert "too small for this node's rank 3" in err


@pytest.mark.parametrize(
    ("act", "code"),
    [
        ("sys.exit(3)", 3),
        ("return 4", 4),
        ("os._exit(5)", 5),
        ("raise RuntimeError('x')", 1),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 128 + signal.SIGSEGV),
    ],
)
def test_first_failure_ends_the_others(tmp_path: Path, act: str, code: int) -> None:
    failure, before = tmp_path / "failure", time.time()
    extra = {**meeting_point(), "LOCAL_WORLD_SIZE": 2, "HPCTRAIN_FAILURE_FILE": failure}
    assert finish(start((script(tmp_path, SECOND.format(act)),), **extra))[0] == code
    *words, when = failure.read_text().split()
    assert words == ["1", socket.gethostname(), str(code)]
    assert before - 1 <= float(when) <= time.time() + 1


def test_rank_that_failed_first_is_named_when_both_have_ended(tmp_path: Path) -> None:
    # Rank 0 fails because rank 1 did; the parent is stopped until both are gone.
    (tmp_path / "pids").mkdir()
    body = IN_TURN.format(folder=tmp_path)
    failure = tmp_path / "failure"
    extra = {**meeting_point(), "LOCAL_WORLD_SIZE": 2, "HPCTRAIN_FAILURE_FILE": failure}
    parent = start((script(tmp_path, body),), **extra)
    pids = [tmp_path / "pids" / rank for rank in "01"]
    wait_for(lambda: all(pid.exists() and pid.read_text() for pid in pids))
    parent.send_signal(signal.SIGSTOP)
    (tmp_path / "1").touch()
    wait_for(lambda: zombie(int(pids[1].read_text())))
    (tmp_path / "0").touch()
    wait_for(lambda: zombie(int(pids[0].read_text())))
    parent.send_signal(signal.SIGCONT)
    assert finish(parent)[0] == 8
    assert failure.read_text().startswith("1 ")


def test_after_a_signal_to_the_job_no_rank_failed_first(tmp_path: Path) -> None:
    failure = tmp_path / "failure"
    (tmp_path / "failure.signal").touch()
    extra = {**meeting_point(), "LOCAL_WORLD_SIZE": 2, "HPCTRAIN_FAILURE_FILE": failure}
    assert finish(start((script(tmp_path, SECOND.format("sys.exit(3)")),), **extra))[0] == 3
    assert not failure.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_children_do_not_outlive_the_parent(tmp_path: Path, number: signal.Signals) -> None:
    body = f'open("{tmp_path}/" + os.environ["RANK"], "w").write(str(os.getpid())); time.sleep(600)'
    parent = start((script(tmp_path, body),), **meeting_point(), LOCAL_WORLD_SIZE=2)
    notes = [tmp_path / "0", tmp_path / "1"]
    wait_for(lambda: all(note.exists() and note.read_text() for note in notes))
    parent.send_signal(number)
    finish(parent)
    assert parent.returncode == (143 if number == signal.SIGTERM else -9)
    wait_for(lambda: not any(alive(int(note.read_text())) for note in notes))


def zombie(pid: int) -> bool:
    """Whether a process has ended, and its parent was not told yet."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # A child whose parent was killed stays as a zombie where nobody reaps it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
