"""Starts and stops the twin of a site, whose record is a file in /run."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.base.errors import LabError
from hpc_train.base.files import write_atomic
from hpc_train.base.values import Duration, Value
from hpc_train.lab.daemons import (
    Daemon,
    ask,
    end,
    is_alive,
    munged_command,
    must,
    slurm,
    start_daemon,
    start_database,
    wait_for,
    write_key,
)
from hpc_train.lab.requirements import check_root, check_twin_programs
from hpc_train.lab.slurm_conf import slurmdbd_conf
from hpc_train.lab.twins.slurm_conf import (
    ACCOUNT,
    ADDRESS,
    MARK,
    UNKNOWN_CPUS,
    UNKNOWN_GPUS,
    TwinPaths,
    account_settings,
    add_route,
    default_queue,
    features,
    free_ports,
    has_accounting,
    known_nodes,
    most,
    pools,
    queue_name,
    queues,
    remove_route,
    shape_of,
    slurm_conf,
    stands_for_others,
    twin_partitions,
    users_of_machine,
)
from hpc_train.runs.json_files import exclusive
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.partition import ANY, Partition, Qos
from hpc_train.sites.profile import SiteProfile

RECORDS = Path("/run/hpctrain-twins")


class Twin(Value, frozen=True, kw_only=True):
    """A twin that was started completely or in part: the data to stop and remove it."""

    schema: int = 1
    name: str
    place: TwinPaths
    daemons: tuple[Daemon, ...] = ()
    complete: bool = False
    assumptions: tuple[str, ...] = ()

    @property
    def env(self) -> str:
        """Return the path of the lines for a shell."""
        return f"{self.place.folder}/env"

    @property
    def slurm_conf(self) -> str:
        """Return the path of its slurm.conf."""
        return f"{self.place.folder}/slurm.conf"


def read(name: str) -> Twin | None:
    """Return a twin, or None if there is no readable record."""
    try:
        return msgspec.json.decode(_file(name).read_bytes(), type=Twin)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def read_all() -> tuple[Twin, ...]:
    """Return all twins, by name."""
    names = sorted(path.stem for path in RECORDS.glob("*.json"))
    return tuple(twin for name in names if (twin := read(name)) is not None)


def write(twin: Twin) -> None:
    """Write the record of a twin atomically."""
    write_atomic(_file(twin.name), msgspec.json.encode(twin))


def is_running(twin: Twin) -> bool:
    """Whether a twin was started completely and all its processes exist."""
    return twin.complete and all(is_alive(daemon) for daemon in twin.daemons)


def _file(name: str) -> Path:
    return RECORDS / f"{name}.json"


FOLDERS = "/var/tmp/hpctrain-twins"  # noqa: S108 - root's own folder, checked before use
# A socket path is limited to 107 bytes.
_LONGEST_NAME = 60
_WITHIN_S = 20.0
_GRACE_S = 1.0


def start(profile: SiteProfile) -> tuple[Twin, bool]:
    """Start the twin of a site, unless it is running with the same configuration.

    Return it, and whether it was not running before.

    Raises:
        LabError: it cannot be started; nothing is left behind.
    """
    _check(profile)
    with exclusive(RECORDS / f".{profile.name}.lock"):
        found = read(profile.name)
        if found and is_running(found) and _same(profile, found.place):
            return found, False
        if found:
            _clear(found)
        return _make(profile), True


def stop(name: str) -> bool:
    """Stop the twin of a site, by name or file of its profile; return whether there was one.

    Raises:
        LabError: something cannot be removed.
    """
    check_root()
    name = name.rpartition("/")[2].removesuffix(".yaml")
    with exclusive(RECORDS / f".{name}.lock"):
        found = read(name)
        if found:
            _clear(found)
    return found is not None


def configuration(profile: SiteProfile, place: TwinPaths) -> dict[str, str]:
    """Return the files of a twin by name; pure text."""
    files = {
        # It is written first: it marks the folder as that of a twin.
        "slurm.conf": slurm_conf(profile, place),
        "job_submit.lua": job_submit(profile),
        "env": f"export SLURM_CONF={place.folder}/slurm.conf\n",
    }
    if place.dbd_port:
        commands = account_settings(profile, users_of_machine())
        lines = (" ".join(words) for words in commands)
        files["slurmdbd.conf"] = slurmdbd_conf(place.folder, "localhost", ADDRESS, place.dbd_port)
        files["accounts"] = "".join(f"{line}\n" for line in lines)
    return files


def _check(profile: SiteProfile) -> None:
    check_root()
    if not find_batch_system(profile.scheduler).steps:
        raise LabError(f"{profile.name} has no Slurm; only a Slurm site can have a twin")
    if len(profile.name) > _LONGEST_NAME:
        raise LabError(f"{profile.name}: the name of a twin has at most {_LONGEST_NAME} characters")
    check_twin_programs(accounting=has_accounting(profile))


def _same(profile: SiteProfile, place: TwinPaths) -> bool:
    files = configuration(profile, place)
    paths = {name: Path(place.folder, name) for name in files}
    return all(path.is_file() and path.read_text() == files[n] for n, path in paths.items())


def _make(profile: SiteProfile) -> Twin:
    ports = free_ports(profile.name)
    place = TwinPaths(
        folder=f"{FOLDERS}/{profile.name}",
        port=next(ports),
        dbd_port=next(ports) if has_accounting(profile) else 0,
    )
    with ExitStack() as undo:
        twin = Twin(name=profile.name, place=place, assumptions=assumptions(profile))
        _write_files(profile, place)
        write(twin)
        undo.callback(lambda: _clear(read(profile.name) or twin))
        _start_daemons(profile, place)
        twin = msgspec.structs.replace(read(profile.name) or twin, complete=True)
        write(twin)
        undo.pop_all()
    return twin


def _write_files(profile: SiteProfile, place: TwinPaths) -> None:
    folder = Path(place.folder)
    _remove(folder)
    try:
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        for name, text in configuration(profile, place).items():
            path = folder / name
            path.touch(mode=0o600 if name == "slurmdbd.conf" else 0o644)
            path.write_text(text, encoding="utf-8")
        for name in ("state", "log", "munge", "db"):
            (folder / name).mkdir(mode=0o755)
        write_key(folder)
    except OSError as failure:
        raise LabError(f"{failure.filename}: {failure.strerror}") from None


def _remove(folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    conf = folder / "slurm.conf"
    ours = not folder.is_symlink() and folder.stat().st_uid == os.geteuid() and conf.is_file()
    if not ours or not conf.read_text(encoding="utf-8", errors="replace").startswith(MARK):
        raise LabError(f"{folder} exists and is not the folder of a twin", "remove it")
    shutil.rmtree(folder)


def _start_daemons(profile: SiteProfile, place: TwinPaths) -> None:
    """Start every daemon; each is recorded as soon as it runs."""
    folder = place.folder

    def run(*argv: str, **extra: str) -> Daemon:
        daemon = start_daemon(place.folder, argv[0], argv, extra)
        twin = read(profile.name)
        if twin is not None:
            write(msgspec.structs.replace(twin, daemons=(*twin.daemons, daemon)))
        return daemon

    def is_up() -> bool:
        return "is UP" in ask(slurm(folder, "scontrol", "ping")).stdout

    add_route()
    munged = run(*munged_command(folder))
    wait_for(folder, munged, Path(folder, "munge/socket").exists, 10)
    if place.dbd_port:
        start_database(folder, run)
    # slurmctld adds its cluster and its GPUs to the database, and the accounts need both.
    controller = run("slurmctld", "-D", "-i", "-f", f"{folder}/slurm.conf")
    wait_for(folder, controller, is_up, _WITHIN_S)
    if place.dbd_port:
        for words in account_settings(profile, users_of_machine()):
            must(slurm(place.folder, "sacctmgr", "-i", *words))


def _clear(twin: Twin) -> None:
    def alive() -> set[int]:
        return {daemon.pid for daemon in twin.daemons if is_alive(daemon)}

    if not end(alive, _GRACE_S):
        raise LabError(f"these processes of the twin cannot be ended: {sorted(alive())}")
    _remove(Path(twin.place.folder))
    _file(twin.name).unlink(missing_ok=True)
    if not read_all():
        remove_route()


def assumptions(profile: SiteProfile) -> tuple[str, ...]:
    """Return one sentence for each assumption."""
    partitions = twin_partitions(profile)
    return (
        "accounts: any account is accepted; hpctrain lint checks their pattern",
        *_partitions(profile),
        *_sizes(profile, partitions),
        *_limits(partitions),
        *_qos(profile),
    )


def _partitions(profile: SiteProfile) -> Iterator[str]:
    unnamed = [one for one in twin_partitions(profile) if stands_for_others(one)]
    if unnamed:
        yield f"partitions: the profile names none; the twin has one, {queue_name(unnamed[0])}"
    elif any(map(stands_for_others, profile.partitions)):
        yield "partitions: the site has more than the profile names; the twin refuses the others"


def _sizes(profile: SiteProfile, partitions: tuple[Partition, ...]) -> Iterator[str]:
    found = pools(profile)
    counts: dict[int, list[Partition]] = {}
    for one in partitions:
        if known_nodes(one) is None:
            counts.setdefault(found[shape_of(one, profile)].count, []).append(one)
    for count, entries in counts.items():
        yield f"nodes of {_names(entries)}: number unknown; the twin has {count}"
    cores = [one for one in partitions if one.cpus_per_node is None]
    for cpus in sorted({shape_of(one, profile).cpus for one in cores}):
        mine = [one for one in cores if shape_of(one, profile).cpus == cpus]
        why = "from the cores per GPU" if cpus > UNKNOWN_CPUS else "unknown"
        yield f"cores of a node of {_names(mine)}: {why}; the twin has {cpus}"
    gpus = [one for one in partitions if one.gpus_per_node is None]
    if gpus and profile.gpu_request != "none":
        yield f"GPUs of a node of {_names(gpus)}: unknown; the twin has {UNKNOWN_GPUS}"
    memory = [one for one in partitions if one.mem_per_node is None]
    if memory:
        yield f"memory of a node of {_names(memory)}: unknown; not limited"


def _limits(partitions: tuple[Partition, ...]) -> Iterator[str]:
    """Name the partitions whose jobs only the qualities of service limit."""
    times = [one for one in partitions if most(one, "time") is None and not one.max_node_minutes]
    if times:
        yield f"time limit of {_names(times)}: unknown; not limited by the partition"


def _qos(profile: SiteProfile) -> Iterator[str]:
    listed = [qos for qos in profile.qos if qos.name != ANY]
    free = [q.name for q in listed if not (q.max_time or q.max_nodes or q.max_gpus)]
    if free:
        yield f"limits of qos {', '.join(free)}: unknown; not limited"
    if listed and len(listed) < len(profile.qos):
        yield "qos: the site has more than the profile lists; the twin refuses the others"


def _names(partitions: list[Partition]) -> str:
    return ", ".join(queue_name(one) if one.name == ANY else one.name for one in partitions)


_PLUGIN = Path(__file__).with_name("job_submit.lua")
_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
_CORES = ("cpus-per-task", "cpus-per-gpu")
Queues = dict[str, tuple[Partition, ...]]


def job_submit(profile: SiteProfile) -> str:
    """Return job_submit.lua: the profile's limits as a table, then the code that applies them."""
    rules = {
        "site": profile.name,
        "default": default_queue(profile),
        "required": _required(profile),
        "forbidden": dict(_forbidden(profile)),
        "account_like": profile.account.example or profile.account.pattern or "NAME",
        "charged": ACCOUNT if has_accounting(profile) else None,
        "entries": [
            _entry(one, queues(profile)) for one in twin_partitions(profile) if profile.partitions
        ],
        "qos": [_limits_of_plugin(qos) for qos in profile.qos if qos.name != ANY],
    }
    return f"rules = {lua(rules)}\n\n{_PLUGIN.read_text(encoding='utf-8')}"


def lua(value: Any) -> str:
    """Return a value in Lua's notation."""
    if isinstance(value, Mapping):
        pairs = (f"[{lua(key)}] = {lua(item)}" for key, item in value.items() if item is not None)
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (list, tuple)):
        return f"{{{', '.join(lua(item) for item in value)}}}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, int) else _quoted(str(value))


def _quoted(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\0": "\\0"}
    return f'"{"".join(escapes.get(letter, letter) for letter in text)}"'


def _required(profile: SiteProfile) -> list[str]:
    account = ("account",) if profile.account.required else ()
    mem = ("mem",) if profile.mem_request == "required" else ()
    return list(dict.fromkeys((*profile.required, *account, *mem)))


def _forbidden(profile: SiteProfile) -> Iterator[tuple[str, str]]:
    if profile.mem_request == "forbidden":
        yield from ((option, "memory is given with the nodes, GPUs or cores") for option in _MEMORY)
    if profile.cpu_request == "forbidden":
        yield from ((option, "cores are given with the nodes or GPUs") for option in _CORES)
    yield from ((option.lstrip("-"), why) for option, why in profile.forbidden.items())


def _entry(partition: Partition, known: Queues) -> dict[str, Any]:
    select, queue = partition.select, queue_name(partition)
    # slurmctld enforces the limits of a partition that also exists in Slurm.
    shared = len(known[queue]) > 1 or bool(partition.bounds)
    return {
        **(_native(partition) if shared else {}),
        "name": partition.name,
        "any": partition.name == ANY and not (select and select.partition),
        "queue": queue,
        "features": features(partition),
        "qos": select.qos if select else None,
        "suffix": select.account_suffix if select else None,
        "most_nodes": partition.max_nodes or partition.nodes,
        "node_gpus": partition.gpus_per_node,
        "min_gpus": partition.min_gpus,
        "max_gpus": partition.max_gpus,
        "min_minutes": partition.min_time and partition.min_time // 60,
        "cpus_per_node": partition.cpus_per_node,
        "cpus_per_gpu": partition.cpus_per_gpu,
        "cpu_rule": partition.cpu_rule,
        "bounds": [
            {"for_nodes": bound.nodes, "max_minutes": _minutes(bound.max_time)}
            for bound in partition.bounds
        ],
        "max_node_minutes": partition.max_node_minutes,
    }


def _native(partition: Partition) -> dict[str, Any]:
    """Return the limits in slurm.conf of a partition that no other shares."""
    return {
        "min_nodes": partition.min_nodes,
        "max_nodes": partition.max_nodes,
        "max_minutes": _minutes(partition.max_time),
        "nodes": partition.nodes,
        "gpus_per_node": partition.gpus_per_node,
    }


def _limits_of_plugin(qos: Qos) -> dict[str, Any]:
    """Return the limits of a QOS that slurmdbd does not enforce."""
    return {
        "name": qos.name,
        "default": qos.default,
        "partitions": {name: True for name in qos.partitions} or None,
        "max_node_minutes": qos.max_node_minutes,
    }


def _minutes(time: Duration | None) -> int | None:
    return None if time is None else -(-time // 60)
