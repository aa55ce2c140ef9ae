"""Runs on machines of a list by ssh: locks, copies, states and ends, on hosts in namespaces."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.host_user import WAIT, HostsUser
from tests.servers.hosts import ROOT
from tests.submissions.waiting import LIMIT_S, wait_for

pytestmark = [pytest.mark.ssh]

WORD = "s3cr3t-w0rd"
TRAINER = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: sum {total.item():.0f}")
dist.destroy_process_group()
"""


def test_two_hosts_train_together(mine: HostsUser, torch: None) -> None:
    (mine.user.folder / "train.py").write_text(TRAINER)
    resources = {"nodes": 2, "tasks_per_node": 2, "cpus_per_task": 1, "time": "10m"}
    job = {"name": "j", "command": ["python", "train.py"], "resources": resources}
    mine.submit(mine.user.write("j.yaml", job))
    # Six processes import torch, which on a busy machine takes minutes.
    row = mine.wait("COMPLETED", within_s=5 * LIMIT_S)
    assert (row["state"], row["nodes"]) == ("COMPLETED", "host1,host2")
    logs = mine.user.logs("j")
    assert all(f"rank {rank} of 4: sum 4" in logs[f"rank-{rank}.out"] for rank in range(4))
    assert {"job.out", "job-host2.out"} <= logs.keys()
    mine.nothing_left()
    wait_for(lambda: "No such file" in mine.on("host2", "ls ~/hpctrain/runs/j 2>&1"))


def test_a_run_waits_for_a_host_in_use_and_says_whose_it_is(mine: HostsUser) -> None:
    mine.submit(mine.job(WAIT, name="first"))
    mine.begun("first")
    mine.submit(mine.job("echo done", name="second"))
    run = mine.row("first")["run"]
    mine.user.until("second", lambda row: row["reason"] != "")
    second = mine.row("second")
    assert second["state"] == "PENDING"
    assert f"host1 is in use by {run} of root" in second["reason"]
    assert mine.user.hpctrain("cancel", "first").returncode == 0
    assert mine.wait("COMPLETED", "second")["nodes"] == "host1,host2"
    assert mine.row("first")["state"] == "CANCELLED"


def test_the_first_failure_ends_all_hosts(mine: HostsUser) -> None:
    mine.submit(mine.job(f'[ "$NODE_RANK" = 0 ] || exit 3\n{WAIT}'))
    assert "a rank on host2: exit code 3" in mine.wait("FAILED")["problem"]
    mine.nothing_left()


def test_ranks_in_sessions_of_their_own_are_ended_too(mine: HostsUser) -> None:
    program = f"setsid sleep 600 &\ntrap '' TERM\nsetsid bash -c 'sleep 600' &\n{WAIT}"
    mine.submit(mine.job(program))
    mine.begun()
    assert len(mine.left("host2")) > 3
    done = mine.user.hpctrain("cancel", "j")
    assert done.returncode == 0, done.stderr
    mine.nothing_left()
    row = mine.row()
    assert (row["state"], row["problem"]) == ("CANCELLED", "cancelled by the user")
    wait_for(lambda: "here on node 1" in mine.user.logs("j").get("node-1.out", ""))


def test_the_limit_holds_without_the_machine_that_submitted(mine: HostsUser) -> None:
    mine.submit(mine.job(WAIT, resources={"time": "20s"}))
    mine.begun()
    os.kill(mine.supervisor(), signal.SIGKILL)
    assert mine.row()["state"] == "RUNNING"
    row = mine.wait("TIMEOUT")
    assert row["problem"] == "the time limit was reached"
    assert "here on node 1" in mine.user.logs("j")["node-1.out"]
    mine.nothing_left()


def test_a_run_that_ends_without_a_supervisor_is_recorded(mine: HostsUser) -> None:
    go = '"$HOME/go"'
    mine.submit(mine.job(f"echo here; until [ -e {go} ]; do sleep 0.1; done; rm {go}; echo done"))
    mine.begun()
    os.kill(mine.supervisor(), signal.SIGKILL)
    for host in ("host1", "host2"):
        mine.on(host, "touch ~/go")
    row = mine.wait("COMPLETED")
    assert row["nodes"] == "host1,host2"
    assert "done" in mine.user.logs("j")["node-0.out"]


def test_a_silent_host_is_unknown_until_it_answers(mine: HostsUser) -> None:
    # With one host, no other can tell whether it is lost.
    mine.submit(mine.job(WAIT, nodes=1))
    mine.begun(logs=1)
    mine.lab.plug(mine.lab.hosts[0], connected=False)
    try:
        row = mine.wait("UNKNOWN")
        assert row["problem"].startswith("host1 does not answer: ")
    finally:
        mine.lab.plug(mine.lab.hosts[0], connected=True)
    mine.wait("RUNNING")


def test_a_host_without_power_ends_the_run_on_the_others(mine: HostsUser) -> None:
    mine.submit(mine.job(WAIT))
    mine.begun()
    mine.lab.switch_off(mine.lab.hosts[1])
    try:
        row = mine.wait("NODE_FAIL")
        assert row["problem"].startswith("host2 has not answered for ")
        assert row["problem"].endswith(" s, and host1 cannot reach it")
        assert not mine.left("host1")
    finally:
        mine.lab.switch_on_all()


def test_a_secret_reaches_the_ranks_and_no_file(mine: HostsUser) -> None:
    file = mine.job('echo "${#TOKEN} characters"', secrets={"TOKEN": "env"})
    done = mine.user.hpctrain("submit", file, "--site", "lab-hosts", "--wait", TOKEN=WORD)
    assert done.returncode == 0, done.stderr
    assert mine.user.logs("j")["node-1.out"] == "11 characters\n"
    for host in ("host1", "host2"):
        # A checkout below /tmp has this file.
        assert mine.on(host, f"grep -rl --exclude-dir={Path(ROOT).name} {WORD} ~ /tmp") == ""
    results = [path for path in (mine.user.folder / "results").rglob("*") if path.is_file()]
    assert results and not any(WORD.encode() in path.read_bytes() for path in results)


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that all hosts see; each has a /tmp of its own."""
    folder = Path("/var/tmp", f"hpctrain-{tmp_path.name}")  # noqa: S108 - its point is to be there
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def test_a_shared_folder_needs_no_copies(mine: HostsUser, shared: Path) -> None:
    site = mine.profile("together", {"poll: 2s\n": "poll: 2s\nshared: true\n"})
    mine.job("pwd; ls")
    for name in ("j.yaml", "program.sh"):
        shutil.copy(mine.user.folder / name, shared)
    job = mine.user.write("here.yaml", {**_content(mine, "j.yaml"), "workdir": str(shared)})
    mine.submit(job, "--results", shared / "results", "--wait", site=site)
    (log,) = (shared / "results" / "j").glob("*/logs/node-1.out")
    assert log.read_text().splitlines() == [str(shared), "j.yaml", "program.sh", "results"]


def _content(mine: HostsUser, file: str) -> dict[str, object]:
    content: dict[str, object] = json.loads((mine.user.folder / file).read_text())
    return content
