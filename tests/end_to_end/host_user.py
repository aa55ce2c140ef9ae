"""Two hosts that ssh reaches, and someone who submits to them."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import refuse
from tests.end_to_end.user import Row, User, user_of
from tests.servers.hosts import SITE, SshHosts, running_hosts
from tests.submissions.waiting import LIMIT_S, wait_for

# A rank that writes a word, and waits for the end of the test.
WAIT = 'echo here on node "$NODE_RANK"; sleep 600'


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsUser:
    """Someone with an empty folder, who may also pull cables."""

    lab: SshHosts
    user: User

    def job(self, program: str, nodes: int = 2, name: str = "j", **keys: Any) -> str:
        """Write a job whose process on each host runs a program of bash."""
        (self.user.folder / "program.sh").write_text(program + "\n")
        resources = {"nodes": nodes, "tasks_per_node": 1, "cpus_per_task": 1, "time": "10m"}
        resources |= keys.pop("resources", {})
        job = {"name": name, "command": ["bash", "program.sh"], "launcher": "spawn", **keys}
        return self.user.write(f"{name}.yaml", {**job, "resources": resources})

    def submit(self, file: str, *words: str | Path, site: str = SITE) -> None:
        """Submit a file, which has to work."""
        done = self.user.submit(file, *words, site=site)
        assert done.returncode == 0, done.stderr

    def row(self, name: str = "j") -> Row:
        """Return the row of the only run of a job."""
        return self.user.run(name)

    def wait(self, state: str, name: str = "j", within_s: float = LIMIT_S) -> Row:
        """Wait for a state of the only run of a job; return the row that has it."""
        return self.user.wait(name, state, within_s)

    def begun(self, name: str = "j", logs: int = 2) -> None:
        """Wait until a program on each host has written to its log."""
        self.user.until(name, lambda row: len(self.written(name)) == logs)

    def written(self, name: str) -> list[str]:
        """Return the logs of nodes that are fetched and not empty."""
        logs = (self.user.folder / "results" / name).glob("*/logs/node-*.out")
        return [log.name for log in logs if log.stat().st_size]

    def on(self, host: str, command: str) -> str:
        """Return what a command on a host prints."""
        argv = (f"{self.lab.folder}/bin/ssh", "-o", "BatchMode=yes", host, command)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
        return done.stdout

    def left(self, host: str) -> list[str]:
        """Return the processes of runs on a host."""
        marks = "HPCTRAIN_RUN=|HPCTRAIN_HOLDER="
        return self.on(host, f"grep -lzE '^({marks})' /proc/[0-9]*/environ 2>/dev/null").split()

    def nothing_left(self) -> None:
        """Wait until no process of a run is on any host."""
        wait_for(lambda: not any(self.left(host.name) for host in self.lab.hosts))

    def supervisor(self, name: str = "j") -> int:
        """Return the process that watches the runs of a job."""
        home = str(self.user.folder / "results" / name)
        found = [
            pid for pid in _pids() if {"hpc_train.hosts.queue_runner:run_one", home} <= _words(pid)
        ]
        (pid,) = found
        return pid

    def profile(self, name: str, change: Mapping[str, str]) -> str:
        """Write a profile like that of the hosts into the folder; return its name."""
        text = Path(self.lab.profile).read_text()
        for old, new in {f"name: {SITE}\n": f"name: {name}\n", **change}.items():
            assert text.count(old) == 1, text
            text = text.replace(old, new)
        (self.user.folder / f"{name}.yaml").write_text(text)
        return name


def _pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _words(pid: int) -> set[str]:
    try:
        return set(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0"))
    except OSError:
        return set()


@pytest.fixture(scope="session")
def two_hosts() -> Iterator[SshHosts]:
    """Return two hosts for all tests of this process."""
    if os.geteuid() != 0:
        refuse("hosts in namespaces need root")
    with running_hosts() as found:
        yield found


@pytest.fixture
def ssh_lab(two_hosts: SshHosts) -> SshHosts:
    """Return two hosts that run, whatever the test before did to them."""
    two_hosts.switch_on_all()
    return two_hosts


@pytest.fixture
def mine(ssh_lab: SshHosts, tmp_path: Path) -> Iterator[HostsUser]:
    """Return a user of hosts that run nothing, and leave them so."""
    environment = user_of(ssh_lab, tmp_path).environment
    environment = {**environment, "PATH": f"{ssh_lab.folder}/bin:{environment['PATH']}"}
    user = User(folder=tmp_path, environment=environment, profile=Path(ssh_lab.profile))
    one = HostsUser(lab=ssh_lab, user=user)
    yield one
    for path in (tmp_path / "results").glob("*"):
        user.hpctrain("cancel", path.name)
    one.nothing_left()
