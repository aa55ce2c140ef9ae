"""Starts a lab: networks, files, daemons, profile."""

from __future__ import annotations

import datetime
import os
import shutil
import socket
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from hpc_train.base.errors import LabError
from hpc_train.base.value import Value
from hpc_train.lab import state_file
from hpc_train.lab.accounting import start_accounting
from hpc_train.lab.daemons import (
    Daemon,
    check_alive,
    last_output,
    launch,
    munged_command,
    wait_for,
    write_key,
)
from hpc_train.lab.down import clear, leftovers
from hpc_train.lab.lab_status import (
    check_unclaimed,
    check_within_reach,
    is_live,
    made_from,
    node_states,
)
from hpc_train.lab.network import build
from hpc_train.lab.profile import MpiPrograms, profile_text, publish
from hpc_train.lab.requirements import check_free, check_machine, check_root, is_lab_folder
from hpc_train.lab.run_program import ask, installed, must
from hpc_train.lab.settings import (
    CONTROLLER,
    MOST_LABS,
    Settings,
    check,
    differences,
    nodes_of,
)
from hpc_train.lab.slurm_conf import gres_conf, hosts, slurm_conf, topology_conf
from hpc_train.lab.slurm_programs import shell_lines, slurm, version_of
from hpc_train.lab.state_file import Lab

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
    if settings.nodes_per_switch:
        (folder / "topology.conf").write_text(topology_conf(settings), encoding="utf-8")
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
