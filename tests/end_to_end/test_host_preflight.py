"""Hosts that would end a run, or do not reach each other: refused before anything starts."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.host_user import HostsUser

pytestmark = [pytest.mark.ssh]


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
