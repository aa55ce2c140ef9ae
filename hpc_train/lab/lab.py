"""The lab: requirements met, started, shown and removed."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hpc_train.base.errors import LabError
from hpc_train.base.value import Value
from hpc_train.lab import state_file
from hpc_train.lab.daemons import (
    Daemon,
    check_alive,
    end,
    is_alive,
    last_output,
    launch,
    members,
    munged_command,
    start_accounting,
    wait_for,
    write_key,
)
from hpc_train.lab.network import ask, build, installed, must
from hpc_train.lab.profile import MpiPrograms, profile_link, profile_text, publish, withdraw
from hpc_train.lab.requirements import check_free, check_machine, check_root, is_lab_folder
from hpc_train.lab.settings import (
    CONTROLLER,
    DEFAULT_FOLDER,
    MOST_LABS,
    Settings,
    check,
    differences,
    memory,
    nodes_of,
)
from hpc_train.lab.slurm_conf import gres_conf, hosts, slurm_conf
from hpc_train.lab.slurm_programs import chosen_prefix, shell_lines, slurm, version_of
from hpc_train.lab.state_file import (
    Lab,
    LabState,
    check_unclaimed,
    check_within_reach,
    is_live,
    made_from,
    node_states,
    state_of,
)
from hpc_train.lab.twins.start_and_stop import start, stop
from hpc_train.lab.twins.state_file import read_all
from hpc_train.sites.load import load_site

_GRACE_S = 2.0


def down(folder: str | None = None) -> str:
    """Remove a lab; return its folder; an empty text if there was none.

    Without a folder: the only lab, or what is left of one without a record.

    Raises:
        LabError: there are several, one is in another namespace, or something cannot be removed.
    """
    check_root()
    with state_file.only_one():
        labs = state_file.read_all()
        found = [lab for lab in labs if folder in (None, lab.settings.folder)]
        if len(found) > 1:
            commands = [f"hpctrain lab down --dir {lab.settings.folder}" for lab in found]
            raise LabError(f"{len(found)} labs are up", "   or   ".join(commands))
        for lab in found:
            check_within_reach(lab)
        settings = found[0].settings if found else Settings(folder=folder or DEFAULT_FOLDER)
        if not found and (state_file.read() or not leftovers(settings)):
            return ""
        clear(settings)
    return settings.folder


def leftovers(settings: Settings) -> tuple[str, ...]:
    """Return the parts of a lab that exist, whether or not there is a record of it."""
    parts = [f"namespace {name}" for name in state_file.existing_namespaces(settings.number)]
    if state_file.has_host_link(settings):
        parts.append(f"interface {settings.host_link}")
    record, profile = state_file.record(settings), profile_link(settings)
    parts += [str(path) for path in (record, profile) if os.path.lexists(path)]
    if is_lab_folder(Path(settings.folder)):
        parts.append(settings.folder)
    return tuple(parts)


def clear(settings: Settings) -> None:
    """End a lab's processes, then remove its files and networks.

    Raises:
        LabError: something cannot be removed.
    """
    _end_processes(settings.number)
    if state_file.has_host_link(settings):
        ask(("ip", "link", "del", settings.host_link))
    for name in state_file.existing_namespaces(settings.number):
        ask(("ip", "netns", "del", name))
    withdraw(settings)
    if is_lab_folder(Path(settings.folder)):
        shutil.rmtree(settings.folder)
    state_file.record(settings).unlink(missing_ok=True)
    if left := leftovers(settings):
        raise LabError(f"could not be removed: {', '.join(left)}")


def _end_processes(number: int) -> None:
    names, lab = state_file.existing_namespaces(number), state_file.read(number)
    daemons = lab.daemons if lab else ()

    def alive() -> set[int]:
        return {daemon.pid for daemon in daemons if is_alive(daemon)} | members(names)

    if not end(alive, _GRACE_S):
        raise LabError(f"these processes of the lab cannot be ended: {sorted(alive())}")


Say = Callable[[str], None]

_IDLE_WITHIN_S = 60.0


class Up(Value, frozen=True, kw_only=True):
    """The running lab, and whether this call started it."""

    lab: Lab
    made: bool


def up(settings: Settings, say: Say) -> Up:
    """Start the lab of a folder unless it is running; a broken one is removed first.

    Labs in other folders stay as they are.

    Raises:
        LabError: the lab is up with other settings; or it cannot be started, and nothing is left
        behind.
    """
    check_root()
    check(settings)
    check_machine(settings)
    with state_file.only_one():
        labs = state_file.read_all()
        found = next((lab for lab in labs if lab.settings.folder == settings.folder), None)
        number = found.settings.number if found else _free_number(labs)
        settings = msgspec.structs.replace(settings, number=number)
        if found is None:
            check_unclaimed(settings)
        elif is_live(found):
            check_within_reach(found)
            _check_same(found, settings)
        broken = state_file.faults(found) if found else leftovers(settings)
        if found and not broken:
            return Up(lab=found, made=False)
        if broken:
            say(f"removing the remains of a lab: {'; '.join(broken)}")
            clear(settings)
        check_free(settings)
        return Up(lab=_make(settings), made=True)


def _free_number(labs: tuple[Lab, ...]) -> int:
    taken = {lab.settings.number for lab in labs}
    free = set(range(1, MOST_LABS + 1)) - taken
    if not free:
        raise LabError(f"{MOST_LABS} labs are up on this machine", "hpctrain lab status")
    return min(free)


def _check_same(found: Lab, asked: Settings) -> None:
    different = differences(found.settings, asked)
    if different:
        raise LabError(
            f"a lab is up with other settings: {', '.join(different)}",
            f"source {found.settings.folder}/env   uses it; "
            f"hpctrain lab down --dir {found.settings.folder}   ends it and its jobs; "
            "hpctrain lab up --dir FOLDER   starts another one",
        )


def _make(settings: Settings) -> Lab:
    lab = Lab(
        settings=settings,
        slurm_version=version_of(settings.slurm_prefix),
        made_from=made_from(),
    )
    with ExitStack() as undo:
        undo.callback(clear, settings)
        state_file.write(lab)
        try:
            _write_files(settings)
        except OSError as failure:
            raise LabError(f"{failure.filename}: {failure.strerror}") from None
        for command in build(settings):
            must(command)
        _start(settings)
        lab = _install_profile(settings)
        state_file.write(lab)
        undo.pop_all()
    return lab


def _write_files(settings: Settings) -> None:
    folder = Path(settings.folder)
    if is_lab_folder(folder):
        shutil.rmtree(folder)
    elif folder.exists():
        folder.rmdir()
    # A new folder is owned by root; other users may write to the parent folder.
    folder.mkdir(parents=True)
    # slurm.conf is written first: it marks the folder as that of the lab.
    (folder / "slurm.conf").write_text(slurm_conf(settings), encoding="utf-8")
    folder.chmod(0o755)
    for name in ("state", "log", "spool", "dev", "db", "munge", "tmp"):
        (folder / name).mkdir(mode=0o755)
    for node in nodes_of(settings):
        (folder / "spool" / node.name).mkdir(mode=0o755)
        (folder / "tmp" / node.name).mkdir()
        (folder / "tmp" / node.name).chmod(0o1777)
    (folder / "gres.conf").write_text(gres_conf(settings), encoding="utf-8")
    (folder / "hosts").write_text(hosts(settings, socket.gethostname()), encoding="utf-8")
    (folder / "env").write_text(shell_lines(settings), encoding="utf-8")
    for index in range(settings.gpus):
        # Slurm requires a character device, which it never opens: a copy of the null device.
        os.mknod(folder / f"dev/gpu{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    write_key(folder)


def _start(settings: Settings) -> None:
    """Start every daemon and wait for the nodes; each is recorded as soon as it runs."""

    def remember(daemon: Daemon) -> None:
        lab = state_file.read(settings.number)
        if lab is not None:
            state_file.write(msgspec.structs.replace(lab, daemons=(*lab.daemons, daemon)))

    def run(host: str, *argv: str) -> Daemon:
        daemon = launch(settings, host, argv)
        remember(daemon)
        return daemon

    munged = run(CONTROLLER, *munged_command(settings.folder))
    wait_for(settings.folder, munged, Path(settings.folder, "munge/socket").exists, 10)
    if settings.accounting:
        start_accounting(settings, remember)
    conf = f"{settings.folder}/slurm.conf"
    daemons = [run(CONTROLLER, "slurmctld", "-D", "-i", "-f", conf)]
    for node in nodes_of(settings):
        daemons.append(run(node.name, "slurmd", "-D", "-f", conf, "-N", node.name))
    _await_idle(settings, daemons)


def _await_idle(settings: Settings, daemons: list[Daemon]) -> None:
    deadline = time.monotonic() + _IDLE_WITHIN_S
    states: dict[str, str] = {}
    while set(states.values()) != {"idle"}:
        time.sleep(0.1)
        # Checked first, because sinfo waits ten seconds for a controller that does not run.
        for daemon in daemons:
            check_alive(settings.folder, daemon)
        states = node_states(settings)
        if time.monotonic() > deadline:
            seen = ", ".join(f"{name} {state}" for name, state in states.items()) or "no node"
            raise LabError(
                f"the nodes are not idle after {_IDLE_WITHIN_S:.0f} s ({seen}); "
                "last output of slurmctld:"
                f"{last_output(settings.folder, daemons[0])}"
            )


def _install_profile(settings: Settings) -> Lab:
    # `--mpi=list` lists the plug-in even if the library of PMIx cannot be loaded.
    pmix = ask(slurm(settings, "srun", "--mpi=pmix", "--test-only", "-N1", "true"))
    found = MpiPrograms(pmix=pmix.returncode == 0, mpirun=installed("mpirun"))
    lab = state_file.read(settings.number)
    if lab is None:
        record = state_file.record(settings)
        raise LabError(f"{record} was removed while the lab was being started")
    today = datetime.date.today().isoformat()
    text = profile_text(settings, found, lab.slurm_version, today)
    Path(lab.profile).write_text(text, encoding="utf-8")
    publish(settings)
    return msgspec.structs.replace(lab, complete=True)


class StartedLab(NamedTuple):
    """A running lab; `is_new` is False if it was running before."""

    lab: Lab
    is_new: bool


class StartedTwin(NamedTuple):
    """A running twin, by the name of its site, and the folder of its `env`."""

    name: str
    folder: str
    accounting: bool
    is_new: bool
    assumptions: tuple[str, ...]


class RunningTwin(NamedTuple):
    """A running twin: the folder of its `env`, and its assumptions about the site."""

    folder: str
    assumptions: tuple[str, ...]


def start_lab(options: Mapping[str, Any], say: Callable[[str], None]) -> StartedLab:
    """Start the lab and wait until its nodes are idle.

    Raises:
        HpcTrainError: invalid options, or Slurm does not start.
    """
    mem = memory(options["mem"])
    settings = Settings(**{**options, "mem": mem, "slurm_prefix": chosen_prefix()})
    result = up(settings, say)
    return StartedLab(result.lab, result.made)


def stop_lab(folder: str | None) -> str:
    """Stop the lab in a folder, or the only lab; return its folder, or an empty string.

    Raises:
        LabError: there is no lab in `folder`, or it cannot be removed.
    """
    stopped = str(down(folder) or "")
    if folder is not None and not stopped:
        raise LabError(f"no lab in {folder}", "hpctrain lab status")
    return stopped


def lab_states(folder: str | None = None) -> dict[str, tuple[Lab, LabState]]:
    """Return the settings and states of the running labs by folder, or of that in `folder`."""
    labs = {lab.settings.folder: lab for lab in state_file.read_all()}
    return {where: (lab, state_of(lab)) for where, lab in labs.items() if folder in (None, where)}


def twins() -> dict[str, RunningTwin]:
    """Return the running twins, by the name of their sites."""
    return {one.name: RunningTwin(one.place.folder, one.assumptions) for one in read_all()}


def start_twin(site: str) -> StartedTwin:
    """Start the twin of a site: a slurmctld without nodes.

    Raises:
        HpcTrainError: no such profile, or Slurm does not start.
    """
    result = start(load_site(site).value)
    twin = result.twin
    accounting = bool(twin.place.dbd_port)
    return StartedTwin(twin.name, twin.place.folder, accounting, result.made, twin.assumptions)


def stop_twin(name: str) -> bool:
    """Stop the twin of a site, by name or file of its profile; return whether it was running."""
    return bool(stop(name.rpartition("/")[2].removesuffix(".yaml")))
