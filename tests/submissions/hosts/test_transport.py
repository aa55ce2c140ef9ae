"""Calls of a host: with a program in place of ssh that runs them here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc_train.submissions.hosts.transport import Answer, at_once, call, options


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program named ssh on PATH; its last argument is a command of the user's shell."""
    program = tmp_path / "ssh"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    write(program, 'echo "welcome to this host"; exec sh -c "${@: -1}"')
    return program


def write(program: Path, text: str) -> None:
    program.write_text(f"#!/bin/bash\n{text}\n")
    program.chmod(0o755)


def test_words_arrive_as_they_are(ssh: Path, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a $(touch no) "folder"\n*'
    answer = call("gpu1", "make", str(folder))
    assert folder.is_dir(), answer
    assert answer.problem == ""
    assert not Path("no").exists()


def test_what_a_shell_prints_first_is_no_part_of_the_answer(ssh: Path, tmp_path: Path) -> None:
    answer = call("gpu1", "look")
    assert answer.get("boot") == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert answer.lines[0][0] in ("has", "boot")


def test_the_home_folder_is_that_of_the_host(
    ssh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert call("gpu1", "make", "~/a b").get("folder") == f"{tmp_path}/home/a b"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("ssh: connect to host gpu1 port 22: Connection refused", ""),
        ("Host key verification failed.", "does not know the key of this host, or it has changed"),
        ("root@gpu1: Permission denied (publickey).", "has no key that the host accepts"),
        ("ssh: Could not resolve hostname gpu1: Name not known", "add it to ~/.ssh/config"),
    ],
)
def test_a_host_that_refuses_says_why(ssh: Path, said: str, problem: str) -> None:
    write(ssh, f"echo 'Warning: something' >&2; echo '{said}' >&2; exit 255")
    answer = call("gpu1", "look")
    assert answer.problem.startswith(said)
    assert problem in answer.problem


def test_an_answer_that_is_cut_off_is_none(ssh: Path) -> None:
    write(ssh, "echo ANSWER; echo busy; exit 255")
    assert call("gpu1", "look") == Answer(problem="ssh ended with exit code 255")


def test_a_server_with_too_many_connections_is_asked_again(ssh: Path, tmp_path: Path) -> None:
    write(
        ssh,
        f'echo x >>{tmp_path}/calls; [ "$(wc -l <{tmp_path}/calls)" -gt 1 ] && exec bash -s; '
        "echo 'kex_exchange_identification: read: Connection reset by peer' >&2; exit 255",
    )
    assert call("gpu1", "look").problem == ""


def test_a_host_without_an_answer_does_not_hold_up_the_others(ssh: Path) -> None:
    write(ssh, "exec sleep 600")
    assert call("gpu1", "look", within_s=0.2).problem == "no answer within 0 s"


def test_the_options_of_ssh() -> None:
    words = options()
    assert {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15"} < set(words)
    assert not any("StrictHostKeyChecking" in word for word in words)
    (path,) = [word.partition("=")[2] for word in words if word.startswith("ControlPath=")]
    # ssh replaces %C by 40 characters, and adds 17 while it makes the socket.
    assert len(path) - 2 + 40 + 17 <= 107
    folder = Path(path).parent
    assert folder.stat().st_mode & 0o077 == 0


def test_the_first_call_of_a_host_ends_before_others_begin(ssh: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(ssh, f'echo begin >>{log}; sleep 0.3; sh -c "${{@: -1}}"; code=$?; echo end >>{log}')
    at_once(lambda host: call(host, "look"), ["never-called-before"] * 4)
    lines = log.read_text().split()
    # All others would make a connection of their own, as long as there is none to share.
    assert lines[:2] == ["begin", "end"]
    assert sorted(lines) == ["begin"] * 4 + ["end"] * 4


def test_what_is_not_fetched_to_its_end_stays_on_the_host(ssh: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "j" / "a b"
    (folder / "logs").mkdir(parents=True)
    for name in ("logs/job.out", "logs/rank-1.out", "status.json", "end"):
        (folder / name).write_text("12345")
    (folder / "logs" / "empty.out").touch()
    call("gpu1", "clear", str(folder), "job.out", "5", "rank-1.out", "4")
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == [
        "end",
        "rank-1.out",
        "status.json",
    ]
    (folder / "model.pt").touch()
    call("gpu1", "clear", str(folder), "rank-1.out", "5")
    assert [path.name for path in folder.rglob("*")] == ["model.pt"]
    (folder / "model.pt").unlink()
    (folder / "logs").mkdir()
    call("gpu1", "clear", str(folder))
    assert not folder.parent.exists()


def test_a_folder_that_cannot_be_written_to_is_named(ssh: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert call("gpu1", "look", "", "0", f"{tmp_path}/new/er").get("readonly") is None
    assert (
        call("gpu1", "look", "", "0", f"{tmp_path}/file/new").get("readonly") == f"{tmp_path}/file"
    )
    # Also root may not write there.
    assert call("gpu1", "look", "", "0", "/proc/sys/new").get("readonly") == "/proc/sys"
