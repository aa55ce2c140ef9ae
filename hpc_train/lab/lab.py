"""The lab: requirements met, started, shown and removed."""

import datetime
import os
import shutil
import socket
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.base.data_folders import LAB_FOLDER
from hpc_train.base.errors import LabError
from hpc_train.lab import state_file
from hpc_train.lab.daemons import (
    Daemon,
    ask,
    build,
    check_alive,
    end,
    installed,
    is_alive,
    last_output,
    launch,
    members,
    munged_command,
    must,
    slurm,
    slurm_version,
    start_database,
    wait_for,
    write_key,
)
from hpc_train.lab.requirements import check_free, check_machine, check_root, is_lab_folder
from hpc_train.lab.settings import (
    CONTROLLER,
    CONTROLLER_PART,
    HOST_LINK,
    NAME,
    Settings,
    address,
    check,
    differences,
    memory,
    nodes_of,
)
from hpc_train.lab.slurm_conf import gres_conf, hosts, slurm_conf, slurmdbd_conf
from hpc_train.lab.state_file import Lab, node_states
from hpc_train.runs.json_files import exclusive

_GRACE_S = 2.0


def down() -> str:
    """Remove the lab, or what is left of one; return its folder, an empty text if there was none.

    Raises:
        LabError: something cannot be removed.
    """
    check_root()
    with exclusive(state_file.LOCK):
        found = state_file.read()
        settings = found.settings if found else Settings()
        if not found and not leftovers(settings):
            return ""
        clear(settings)
    return settings.folder


def leftovers(settings: Settings) -> tuple[str, ...]:
    """Return the parts of a lab that exist, whether or not there is a record of it."""
    parts = [f"namespace {name}" for name in state_file.existing_namespaces()]
    if state_file.has_host_link():
        parts.append(f"interface {HOST_LINK}")
    parts += [str(path) for path in (state_file.RECORD, PROFILE_LINK) if os.path.lexists(path)]
    if is_lab_folder(Path(settings.folder)):
        parts.append(settings.folder)
    return tuple(parts)


def clear(settings: Settings) -> None:
    """End a lab's processes, then remove its files and networks.

    Raises:
        LabError: something cannot be removed.
    """
    _end_processes()
    if state_file.has_host_link():
        ask(("ip", "link", "del", HOST_LINK))
    for name in state_file.existing_namespaces():
        ask(("ip", "netns", "del", name))
    withdraw()
    if is_lab_folder(Path(settings.folder)):
        shutil.rmtree(settings.folder)
    state_file.RECORD.unlink(missing_ok=True)
    if left := leftovers(settings):
        raise LabError(f"could not be removed: {', '.join(left)}")


def _end_processes() -> None:
    names, lab = state_file.existing_namespaces(), state_file.read()
    daemons = lab.daemons if lab else ()

    def alive() -> set[int]:
        return {daemon.pid for daemon in daemons if is_alive(daemon)} | members(names)

    if not end(alive, _GRACE_S):
        raise LabError(f"these processes of the lab cannot be ended: {sorted(alive())}")


Say = Callable[[str], None]

_IDLE_WITHIN_S = 60.0


def up(options: Mapping[str, Any], say: Say) -> tuple[Lab, bool]:
    """Start the lab and wait until its nodes are idle; a broken one is removed first.

    Return it, and whether it was not running before.

    Raises:
        HpcTrainError: an option is invalid; the lab is up with other settings; or it cannot be
        started, and nothing is left behind.
    """
    settings = Settings(**{**options, "mem": memory(options["mem"])})
    check_root()
    check(settings)
    check_machine(settings)
    with exclusive(state_file.LOCK):
        found = state_file.read()
        if found and any(map(is_alive, found.daemons)):
            if different := differences(found.settings, settings):
                raise LabError(
                    f"a lab is up with other settings: {', '.join(different)}",
                    f"source {found.settings.folder}/env   uses it; "
                    "hpctrain lab down   ends it and its jobs",
                )
        broken = state_file.faults(found) if found else leftovers(settings)
        if found and not broken:
            return found, False
        if broken:
            say(f"removing the remains of a lab: {'; '.join(broken)}")
            clear(found.settings if found else settings)
        check_free(settings)
        return _make(settings), True


def _make(settings: Settings) -> Lab:
    lab = Lab(settings=settings, slurm_version=slurm_version())
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
    (folder / "slurmdbd.conf").touch(mode=0o600)
    dbd = slurmdbd_conf(settings.folder, CONTROLLER, address(CONTROLLER_PART), 16819)
    (folder / "slurmdbd.conf").write_text(dbd, encoding="utf-8")
    env = f"export SLURM_CONF={folder}/slurm.conf\n"
    (folder / "env").write_text(env, encoding="utf-8")
    for index in range(settings.gpus):
        # Slurm requires a character device, which it never opens: a copy of the null device.
        os.mknod(folder / f"dev/gpu{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    write_key(folder)


_ACCOUNTS = (
    f"add cluster {NAME}",
    "add account research",
    "add qos high priority=100 preempt=normal",
    "add user root account=research qos=normal,high",
    # slurmdbd itself adds root to the account root.
    "modify user root set defaultaccount=research",
)


def _start(settings: Settings) -> None:
    """Start every daemon and wait for the nodes; each is recorded as soon as it runs."""

    def run(*argv: str, host: str = CONTROLLER, **extra: str) -> Daemon:
        daemon = launch(settings, host, argv, extra)
        lab = state_file.read()
        if lab is not None:
            state_file.write(msgspec.structs.replace(lab, daemons=(*lab.daemons, daemon)))
        return daemon

    munged = run(*munged_command(settings.folder))
    wait_for(settings.folder, munged, Path(settings.folder, "munge/socket").exists, 10)
    if settings.accounting:
        start_database(settings.folder, run)
        for words in _ACCOUNTS:
            must(slurm(settings.folder, "sacctmgr", "-i", *words.split()))
    conf = f"{settings.folder}/slurm.conf"
    daemons = [run("slurmctld", "-D", "-i", "-f", conf)]
    for node in nodes_of(settings):
        daemons.append(run("slurmd", "-D", "-f", conf, "-N", node.name, host=node.name))
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
    pmix = ask(slurm(settings.folder, "srun", "--mpi=pmix", "--test-only", "-N1", "true"))
    lab = state_file.read()
    if lab is None:
        raise LabError(f"{state_file.RECORD} was removed while the lab was being started")
    today = datetime.date.today().isoformat()
    programs = {"pmix": pmix.returncode == 0, "mpirun": installed("mpirun")}
    text = profile_text(settings, lab.slurm_version, today, **programs)
    Path(lab.profile).write_text(text, encoding="utf-8")
    withdraw()
    LAB_FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
    PROFILE_LINK.symlink_to(lab.profile)
    return msgspec.structs.replace(lab, complete=True)


MARK = "# Made by `hpctrain lab up`; `hpctrain lab down` removes it."

_PROFILE = """\
{mark}
schema: 1
name: {name}
description: A real Slurm on this one machine ({nodes}), made by hpctrain lab
scheduler: slurm
slurm: "{version}"
sources:
  - what: the settings of the lab
    date: {date}
    confidence: high
launchers:
  default: torchrun
  allowed: [{launchers}]
{forbidden}\
{mpi}\
partitions:
  - name: gpu
    default: true
    max_time: 1h
{size}\
  - name: long
{size}\
rendezvous:
  host: first-host
gpu_request: gpus-per-node
poll: 2s
slurm_conf: {folder}/slurm.conf
detect: {{clusters: [{name}]}}
env:
  GLOO_SOCKET_IFNAME: ib0
  OMPI_ALLOW_RUN_AS_ROOT: 1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: 1
env_why:
  GLOO_SOCKET_IFNAME: eth0 is shaped to {rate}, ib0 is as fast as the machine
  OMPI_ALLOW_RUN_AS_ROOT: jobs of the lab run as root, which mpirun refuses otherwise
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: mpirun requires both variables
"""

_NO_MPIRUN = "  forbidden: {mpirun: not installed on this machine (apt-get install openmpi-bin)}\n"


def profile_text(settings: Settings, version: str, date: str, *, pmix: bool, mpirun: bool) -> str:
    """Return the profile of a lab on a machine with these programs of MPI."""
    programs = ["mpirun"] * mpirun
    launchers = ["torchrun", "srun", *programs, "accelerate", "deepspeed", "spawn", "single"]
    return _PROFILE.format(
        mark=MARK,
        name=NAME,
        nodes=f"{settings.nodes} nodes" if settings.nodes > 1 else "1 node",
        date=date,
        version=version,
        launchers=", ".join(launchers),
        forbidden="" if mpirun else _NO_MPIRUN,
        mpi="  mpi: pmix\n" if pmix else "",
        size=_size(settings),
        rate=settings.eth0_rate,
        folder=settings.folder,
    )


def _size(settings: Settings) -> str:
    facts: dict[str, object] = {
        "max_nodes": settings.nodes,
        "cpus_per_node": settings.cpus,
        "gpus_per_node": settings.gpus,
        "mem_per_node": settings.mem,
    }
    if settings.gpus:
        facts["gpu_type"] = f'"{settings.gpu_type}"'
    return "".join(f"    {key}: {value}\n" for key, value in facts.items())


# Where every user of this machine finds the profile of a lab by its name.
PROFILE_LINK = LAB_FOLDER / f"{NAME}.yaml"


def withdraw() -> None:
    """Remove the link, and its folder if nothing else is there."""
    PROFILE_LINK.unlink(missing_ok=True)
    if LAB_FOLDER.is_dir() and not any(LAB_FOLDER.iterdir()):
        LAB_FOLDER.rmdir()
