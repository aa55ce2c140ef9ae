"""A live lab is ended by `lab down` alone: not from elsewhere, not on the way to another one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpc_train.lab import state_file
from hpc_train.lab.daemons import Daemon, boot_id, is_alive, start_time
from hpc_train.lab.settings import Settings
from hpc_train.lab.state_file import Lab, is_live, made_from, munge_answers
from tests.lab.conftest import Hpctrain
from tests.submissions.waiting import wait_for

real = pytest.mark.slurm
ELSEWHERE = "/var/tmp/hpctrain-other-lab"  # noqa: S108 - never made
SMALL = ("--nodes", "1", "--gpus", "0")
RECORD = state_file.record(Settings())


def check_untouched(lab: Lab) -> None:
    """All its daemons live, and its controller answers."""
    assert [daemon.name for daemon in lab.daemons if not is_alive(daemon)] == []
    conf = {**os.environ, "SLURM_CONF": f"{lab.settings.folder}/slurm.conf"}
    done = subprocess.run(["sinfo", "-h"], env=conf, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


@contextmanager
def rewritten(text: str | None) -> Iterator[None]:
    """Put another record in the place of the lab's, or none, for a while."""
    before = RECORD.read_text()
    if text is None:
        RECORD.unlink()
    else:
        RECORD.write_text(text)
    yield
    RECORD.write_text(before)


@real
def test_two_labs_work_side_by_side(
    lab: Lab, hpctrain: Hpctrain, other_folder: str, tmp_path: Path
) -> None:
    done = hpctrain("up", "--dir", other_folder, "--nodes", "2", "--gpus", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("lab2: 2 nodes")
    assert done.stdout.endswith("next: hpctrain submit FILE --site lab2\n")
    script = "#!/bin/bash\nsrun -N2 sh -c 'echo $SLURM_CLUSTER_NAME; cat /etc/hosts'\n"
    for folder, cluster, network in (
        (other_folder, "lab2", "10.87.0.2"),
        (lab.settings.folder, "lab", "10.77.0.2"),
    ):
        (tmp_path / cluster).write_text(script)
        conf = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf"}
        log = f"{tmp_path}/{cluster}.log"
        command = ["sbatch", "--wait", "-N2", "-o", log, str(tmp_path / cluster)]
        subprocess.run(command, env=conf, check=True, timeout=240)
        said = (tmp_path / f"{cluster}.log").read_text()
        assert said.splitlines().count(cluster) == 2
        assert f"{network} lab2\n" in said
    both = hpctrain("down")
    assert both.returncode == 2
    assert f"hpctrain lab down --dir {other_folder}" in both.stderr
    assert hpctrain("status", "--dir", other_folder).stdout.startswith("lab2: 2 nodes")
    assert len(json.loads(hpctrain("status", "--json").stdout)["labs"]) == 2
    assert hpctrain("down", "--dir", other_folder).returncode == 0
    check_untouched(lab)


@real
def test_only_the_lab_of_a_folder_is_ended(lab: Lab, hpctrain: Hpctrain) -> None:
    done = hpctrain("down", "--dir", ELSEWHERE)
    assert done.returncode == 2
    assert f"no lab in {ELSEWHERE}" in done.stderr
    check_untouched(lab)
    assert hpctrain("down", "--dir", lab.settings.folder).returncode == 0
    assert not any(map(is_alive, lab.daemons))


@real
@pytest.mark.parametrize(("version", "elsewhere"), [("none", ("--dir", ELSEWHERE)), ("newer", ())])
def test_a_lab_without_a_readable_record_is_left_alone(
    lab: Lab, hpctrain: Hpctrain, version: str, elsewhere: tuple[str, ...]
) -> None:
    newer: dict[str, Any] = {**json.loads(RECORD.read_text()), "schema": 2, "new": 1}
    with rewritten(json.dumps(newer) if version == "newer" else None):
        done = hpctrain("up", *elsewhere)
    assert done.returncode == 2
    assert f"{RECORD} does not describe it" in done.stderr
    assert "hpctrain lab down" in done.stderr
    check_untouched(lab)


@real
@pytest.mark.parametrize(("word", "apart"), [("up", "--net"), ("down", "--pid")])
def test_a_lab_that_was_made_elsewhere_is_left_alone(
    lab: Lab, hpctrain: Hpctrain, word: str, apart: str
) -> None:
    prefix = ("unshare", "--fork", apart, *(("--mount-proc",) if apart == "--pid" else ()))
    done = hpctrain(word, prefix=prefix)
    assert done.returncode == 2
    assert f"the lab in {lab.settings.folder} is up, in another container" in done.stderr
    assert state_file.read() == lab
    check_untouched(lab)


@real
def test_a_broken_lab_with_other_settings_is_left_alone(lab: Lab, hpctrain: Hpctrain) -> None:
    (victim,) = (daemon for daemon in lab.daemons if daemon.name == "slurmd of lab2")
    os.kill(victim.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(victim))
    done = hpctrain("up", *SMALL)
    assert done.returncode == 2
    assert "--nodes 4 instead of 1" in done.stderr
    others = [daemon for daemon in lab.daemons if daemon != victim]
    assert all(map(is_alive, others))


@pytest.fixture
def stranger() -> Iterator[Daemon]:
    """Return a process that is no daemon of a lab."""
    with subprocess.Popen(["sleep", "600"]) as process:
        started = start_time(process.pid) or 0
        yield Daemon(name="slurmctld", pid=process.pid, started=started, boot=boot_id())
        process.kill()


@pytest.fixture
def other_folder() -> Iterator[str]:
    """Return a folder for a lab: a short path that munged can look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield f"{folder}/lab"


@real
@pytest.mark.parametrize("stale", ["killed", "rebooted"])
def test_a_dead_lab_is_no_obstacle(
    lab: Lab, hpctrain: Hpctrain, stranger: Daemon, other_folder: str, stale: str
) -> None:
    for daemon in lab.daemons:
        os.kill(daemon.pid, signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, lab.daemons)))
    # The id is used again: by a younger process, or in another boot with the same time of start.
    change = {"started": stranger.started - 1} if stale == "killed" else {"boot": "an earlier one"}
    found = msgspec.structs.replace(stranger, **change)
    state_file.write(msgspec.structs.replace(lab, daemons=(found, *lab.daemons[1:])))
    done = hpctrain("up", "--dir", other_folder, *SMALL)
    assert done.returncode == 0, done.stderr
    assert Path(lab.settings.folder).is_dir()
    again = hpctrain("up")
    assert "removing the remains of a lab" in again.stderr
    assert is_alive(stranger)
    ended = hpctrain("down", "--dir", other_folder).stdout
    assert ended == f"the lab in {other_folder} was stopped\n"


def test_munge_tells_of_a_lab_whose_processes_cannot_be_seen(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(settings=Settings(folder=folder), made_from=made_from())
        assert not is_live(lab)
        Path(folder, "munge").mkdir()
        with socket.socket(socket.AF_UNIX) as munged:
            munged.bind(f"{folder}/munge/socket")
            munged.listen()
            assert munge_answers(folder)
            assert is_live(lab)
        assert Path(folder, "munge", "socket").exists()
        assert not is_live(lab)
