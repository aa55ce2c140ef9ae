"""Hosts that cannot train together: refused before anything starts, or waited for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.end_to_end.host_user import HostsUser

pytestmark = [pytest.mark.ssh]

_GPUS = {
    f"{{name: host{n}, address: 10.79.0.{n}}}": f"{{name: host{n}, address: 10.79.0.{n}, gpus: 1}}"
    for n in (1, 2)
}
_GPUS["gpus_per_node: 0"] = "gpus_per_node: 1"


@pytest.fixture
def programs(mine: HostsUser) -> Iterator[HostsUser]:
    """Give host2 a folder of programs of its own, on PATH."""
    mine.on("host2", "mount -t tmpfs own /usr/local/sbin")
    yield mine
    mine.user.hpctrain("cancel", "j")
    mine.nothing_left()
    mine.on("host2", "umount -l /usr/local/sbin; rm -rf /tmp/scopes")


def install(user: HostsUser, name: str, text: str) -> None:
    path = f"/usr/local/sbin/{name}"
    user.on("host2", f"printf '%s\\n' '#!/bin/bash' '{text}' >{path}.new; chmod +x {path}.new")
    user.on("host2", f"mv {path}.new {path}")


def refused(user: HostsUser, file: str, site: str = "lab-hosts") -> str:
    done = user.user.submit(file, site=site)
    assert done.returncode == 2, done.stderr
    assert not list((user.user.folder / "results").rglob("run.json"))
    assert not user.left("host1")
    return done.stderr


def test_another_torch_on_one_host(mine: HostsUser) -> None:
    folder = "~/other/torch-9.9.dist-info"
    mine.on(
        "host2", f"mkdir -p {folder}; printf 'Name: torch\\nVersion: 9.9\\n' >{folder}/METADATA"
    )
    (mine.user.folder / "train.py").touch()
    file = mine.job(
        "true",
        command=["python", "train.py"],
        launcher="torchrun",
        setup=["export PYTHONPATH=$HOME/other"],
    )
    said = refused(mine, file)
    assert "host2: has torch 9.9, and host1 has " in said
    assert "ssh host2   to install torch" in said


def test_a_gpu_in_use_is_refused(programs: HostsUser) -> None:
    site = programs.profile("gpus", _GPUS)
    install(programs, "nvidia-smi", "echo 0, $(cat ~/used), 81920")
    programs.on("host2", "echo 71680 >~/used")
    file = programs.job("echo done", resources={"gpus_per_node": 1})
    said = refused(programs, file, site)
    assert "host2: has 70.0 of 80.0 GiB of GPU 0 in use" in said
    assert "ssh host2 nvidia-smi" in said


def test_a_host_that_would_end_the_run_with_the_connection(programs: HostsUser) -> None:
    linger = "[ -e ~/lingers ] && echo Linger=yes"
    install(
        programs, "loginctl", f"[ $1 = show-session ] && echo KillUserProcesses=yes || {linger}"
    )
    said = refused(programs, programs.job("true"))
    assert "host2: logind ends runs there when the last connection by ssh ends" in said
    assert "ssh host2 loginctl enable-linger" in said
    # As systemd-run does, it becomes the command, outside the session.
    install(programs, "systemd-run", "echo $* >>/tmp/scopes; shift 4; exec $@")
    programs.on("host2", "touch ~/lingers")
    install(programs, "systemd-run", 'echo "$*" >>/tmp/scopes; shift 4; exec "$@"')
    programs.submit(programs.job("echo done"), "--wait")
    assert programs.row()["state"] == "COMPLETED"
    scopes = programs.on("host2", "cat /tmp/scopes")
    assert "--user --scope --quiet -- true" in scopes
    assert "--user --scope --quiet -- setsid nohup bash" in scopes


def test_an_address_that_the_others_do_not_reach_is_named(mine: HostsUser) -> None:
    site = mine.profile("wrong", {"address: 10.79.0.1}": "address: 10.79.9.9}"})
    said = refused(mine, mine.job("true"), site)
    assert "host2: cannot connect to 10.79.9.9:" in said
    assert "check the address of the host in the profile" in said
