"""Calls of a host: with a program in place of ssh that runs them here."""

import os
import subprocess
from pathlib import Path

import pytest

from hpc_train.base.errors import SubmitError
from hpc_train.hosts.queue_runner import MOST_MIB, fetch, files_to_copy, parts, put
from hpc_train.hosts.run_on_hosts import fault
from hpc_train.hosts.transport import Answer, StartedHost, StartedHosts, at_once, call, options
from hpc_train.runs.run import RunFolder


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


FILES = ("train.py", "pkg/model.py", "data/big.bin", "results/j/run.json", ".venv/bin/python")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link.py").symlink_to("train.py")
    return tmp_path


def test_without_git_all_but_results_and_environments(work: Path) -> None:
    found = files_to_copy(work, work / "results")
    assert found == ["data/big.bin", "link.py", "pkg/model.py", "train.py"]


def test_with_git_what_it_does_not_ignore_also_if_it_is_new(work: Path) -> None:
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / ".gitignore").write_text("data\n.venv\n")
    subprocess.run(["git", "-C", work, "add", "train.py", "pkg/model.py"], check=True)
    (work / "pkg/model.py").unlink()
    found = files_to_copy(work, work / "results")
    assert found == [".gitignore", "link.py", "train.py"]
    assert files_to_copy(work / "pkg", work / "results") == []


def test_a_folder_of_data_is_refused(work: Path) -> None:
    with (work / "data/big.bin").open("wb") as sparse:
        sparse.truncate((MOST_MIB << 20) + 1)
    with pytest.raises(SubmitError, match=f"at most {MOST_MIB} MiB are copied to a host"):
        files_to_copy(work, work / "results")


__all__ = ["ssh"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("echo 'bash: rsync: command not found' >&2; exit 127", ""),
        ("echo 'rsync: connection unexpectedly closed' >&2; exit 12", ""),
        ("echo 'rsync: write failed: No space left on device (28)' >&2; exit 12", "No space left"),
        ("echo 'rsync: permission denied (13)' >&2; exit 23", "permission denied"),
    ],
)
def test_a_tar_replaces_rsync_only_where_it_is_missing(
    ssh: Path, tmp_path: Path, text: str, problem: str
) -> None:
    write(tmp_path / "rsync", text)
    for name in ("here", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "here" / "a").write_text("content")
    host = StartedHost(name="gpu1", address="", folder=str(tmp_path / "run"), boot="")
    here = tmp_path / "here"
    said = fault(put(host, (here / "a",), here, str(tmp_path / "there"), ("a",)))
    assert problem in said
    assert bool(said) == bool(problem)
    assert (tmp_path / "there" / "a").exists() == (not problem)


HOST = StartedHost(name="gpu2", address="10.0.0.12", folder="/f", boot="b")


def test_the_parts_of_an_answer_may_contain_any_bytes() -> None:
    body = b"log 12 job.out\nlog 3 x\n\nab\nlog 3 rank-1.out\n\xff\0\n"
    assert list(parts(body)) == [("job.out", b"log 3 x\n\nab\n"), ("rank-1.out", b"\xff\0\n")]


def test_a_part_that_was_cut_off_or_has_a_path_is_left_out() -> None:
    assert list(parts(b"log 5 a.out\nab")) == []
    assert list(parts(b"log 2 ../a.out\nab")) == []


def test_the_log_of_the_script_keeps_its_name_on_the_first_host_only(
    ssh: Path, tmp_path: Path
) -> None:
    write(ssh, f'head -n 1 >"{tmp_path}/${{@: -2:1}}"; printf "ANSWER\nlog 1 job.out\n+END\n"')
    run = RunFolder(path=tmp_path / "r")
    run.logs.mkdir(parents=True)
    for name, size in {"job.out": 5, "job-gpu2.out": 7, "rank-1.out": 9}.items():
        (run.logs / name).write_bytes(b"x" * size)
    first = StartedHost(name="gpu1", address="10.0.0.11", folder="/f", boot="b")
    assert fetch(run, StartedHosts(hosts=(first, HOST)))
    sizes = {path.name: path.stat().st_size for path in run.logs.iterdir()}
    assert sizes == {"job.out": 6, "job-gpu2.out": 8, "rank-1.out": 9}
    assert " job.out 5" in (tmp_path / "gpu1").read_text()
    assert " job.out 7" in (tmp_path / "gpu2").read_text()


def test_a_server_with_too_many_connections_is_asked_again(ssh: Path, tmp_path: Path) -> None:
    write(
        ssh,
        f'echo x >>{tmp_path}/calls; [ "$(wc -l <{tmp_path}/calls)" -gt 1 ] && exec bash -s; '
        "echo 'kex_exchange_identification: read: Connection reset by peer' >&2; exit 255",
    )
    assert call("gpu1", "look").problem == ""


def test_a_folder_that_cannot_be_written_to_is_named(ssh: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert call("gpu1", "look", "", "0", f"{tmp_path}/new/er").get("readonly") is None
    assert (
        call("gpu1", "look", "", "0", f"{tmp_path}/file/new").get("readonly") == f"{tmp_path}/file"
    )
    # Also root may not write there.
    assert call("gpu1", "look", "", "0", "/proc/sys/new").get("readonly") == "/proc/sys"
