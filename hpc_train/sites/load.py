"""A profile's files -> SiteProfile, checked."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from hpc_train.base.decode import decode
from hpc_train.base.errors import SiteProfileError, nearest
from hpc_train.base.regex import whole_match
from hpc_train.base.registry import BUILT_IN, names, resolve
from hpc_train.base.slurm_options import directive_problem, sbatch_grammar
from hpc_train.base.values import Sourced, Value
from hpc_train.base.variable_names_and_secrets import (
    KEPT,
    is_reserved,
    is_variable,
    looks_secret,
    named_by_users,
    secret_in,
    why_not_empty,
)
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.merge import read_profile
from hpc_train.sites.partition import ANY, HOST_METHOD, Partition, Qos
from hpc_train.sites.profile import Host, SiteProfile, SourcedSite
from hpc_train.sites.search import find_profile


class Machine(Value, frozen=True, kw_only=True):
    """Cores in this process's affinity mask, and NVIDIA devices."""

    cpus: int
    gpus: int


def this_machine() -> Machine:
    """Count cores and GPUs; CUDA_VISIBLE_DEVICES restricts the GPUs as it does for torch."""
    devices = len(list(Path("/dev").glob("nvidia[0-9]*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        devices = min(devices, len([item for item in visible.split(",") if item.strip()]))
    return Machine(cpus=len(os.sched_getaffinity(0)), gpus=devices)


def load_site(named: str | Path, machine: Machine | None = None) -> SourcedSite:
    """Load a profile by its name or path, as a user writes them, or its file.

    A `local` site is completed with the facts of `machine` (default: this one), one with a list of
    hosts with theirs.

    Raises:
        UnknownNameError: no profile of that name.
        SiteProfileError: the profile is invalid, with file:line; or it is a family.
    """
    path = named if isinstance(named, Path) else find_profile(named)
    whole = read_profile(path)
    if whole.values.get("family") is True:
        raise SiteProfileError(
            f"{whole.origins['family']}: {path.stem} is a family, which only profiles can extend",
            f"write a profile with `extends: {path.stem}`, or: hpctrain site list",
        )
    site = decode(whole.values, SiteProfile, whole.origins, SiteProfileError)
    if site.value.name != path.stem:
        # It is found by the name of its file.
        raise SiteProfileError(
            f"{site.origin('name')}: the name {site.value.name!r} is not that of the file, "
            f"{path.stem!r}"
        )
    check_profile(site)
    batch = find_batch_system(site.value.scheduler)
    if batch.check:
        cast(Callable[[SourcedSite], None], resolve(batch.check))(site)
    if batch.host_list:
        return _with_hosts(site)
    if batch.this_machine:
        machine = machine or this_machine()
        given = site.value.partitions[0] if site.value.partitions else Partition(name="machine")
        facts = {"cpus_per_node": machine.cpus, "gpus_per_node": machine.gpus}
        only = msgspec.structs.replace(given, default=True)
        return _completed(site, (only,), facts, "this machine")
    return site


def _with_hosts(site: SourcedSite) -> SourcedSite:
    """Return a profile whose partitions have the number of hosts and their GPUs.

    All GPUs of a host belong to the job that has its lock, so no option requests them.
    """
    hosts = site.value.hosts
    gpus = next((host.gpus for host in hosts if host.gpus is not None), None)
    given = site.value.partitions or (Partition(name="all", default=True),)
    facts = {"max_nodes": len(hosts), "gpus_per_node": gpus}
    full = _completed(site, given, facts, site.near("hosts"))
    value = msgspec.structs.replace(full.value, gpu_request="none")
    return msgspec.structs.replace(full, value=value)


def _completed(
    site: SourcedSite, partitions: Sequence[Partition], facts: dict[str, Any], origin: str
) -> SourcedSite:
    """Return a profile with facts that its partitions leave out."""
    origins, full = dict(site.origins), []
    for index, partition in enumerate(partitions):
        known = {key: fact for key, fact in facts.items() if fact is not None}
        missing = {key: fact for key, fact in known.items() if getattr(partition, key) is None}
        origins.update({f"partitions.{index}.{key}": origin for key in missing})
        full.append(msgspec.structs.replace(partition, **missing))
    value = msgspec.structs.replace(site.value, partitions=tuple(full))
    return Sourced(value=value, origins=origins)


class Mistake(NamedTuple):
    """A key of a profile, what is wrong with it, and what to write instead."""

    key: str
    text: str
    hint: str = ""


Mistakes = Iterator[Mistake]


def check_profile(site: SourcedSite) -> None:
    """Refuse a profile with a word that does not exist, a contradiction, or a secret.

    Raises:
        SiteProfileError: the first mistake, with file:line.
    """
    for find in (
        _scheduler, _launchers, _variables, _options, _queues, _account, _rendezvous, _network,
        _blocks, _hosts,
    ):  # fmt: skip
        for key, text, hint in find(site):
            raise SiteProfileError(f"{site.near(key)}: {text}", hint)


def _unknown(key: str, kind: str, word: str, known: Collection[str]) -> Mistakes:
    """Find a word that is not in a list; of an empty list nothing is known."""
    if known and word not in known and ANY not in known:
        near = nearest(word, known)
        yield Mistake(key, f"{key}: unknown {kind} {word!r}{near}; known: {', '.join(known)}")


def _scheduler(site: SourcedSite) -> Mistakes:
    """The scheduler of a profile is the name of an executor, ours or a plug-in's."""
    wanted = site.value.scheduler
    if wanted not in BUILT_IN["executors"] and wanted not in (known := names("executors")):
        allowed = f"{', '.join(known)}, not {wanted!r}{nearest(wanted, known)}"
        yield Mistake("scheduler", f"scheduler: must be one of {allowed}")


def _launchers(site: SourcedSite) -> Mistakes:
    launchers = site.value.launchers
    refused = find_batch_system(site.value.scheduler).refused
    default = f"the default launcher {launchers.default!r} is"
    if launchers.default in launchers.forbidden:
        yield Mistake("launchers.default", f"{default} forbidden")
    if launchers.default not in launchers.allowed:
        allowed = ", ".join(launchers.allowed)
        yield Mistake("launchers.default", f"{default} not among the allowed: {allowed}")
    for index, name in enumerate(launchers.allowed):
        if name in refused:
            left = [one for one in launchers.allowed if one not in refused]
            left = left or [one for one in names("launchers") if one not in refused]
            text = f"launchers.allowed: {name}: {refused[name]}"
            hint = f"allowed: [{', '.join(left)}]"
            yield Mistake(f"launchers.allowed.{index}", text, hint)
        if name in launchers.forbidden:
            yield Mistake(f"launchers.forbidden.{name}", f"{name} is allowed and forbidden")
    said = [(key, name) for key in ("forbidden", "warned") for name in getattr(launchers, key)]
    for key, name in said:
        # The search for plug-ins costs more than everything else in a profile.
        if name not in BUILT_IN["launchers"]:
            yield from _unknown(f"launchers.{key}.{name}", "launcher", name, names("launchers"))


def _variables(site: SourcedSite) -> Mistakes:
    """Find invalid names, variables that the script sets itself, and secrets.

    The message does not contain the secret.
    """
    profile, boxes = site.value, site.value.containers
    for name, value in profile.env.items():
        yield from _variable(f"env.{name}", name, value)
    for name, value in (profile.internet.env if profile.internet else {}).items():
        yield from _variable(f"internet.env.{name}", name, value)
    texts = {f"env.{name}": str(value) for name, value in profile.env.items()}
    for index, block in enumerate(profile.env_blocks):
        key = f"env_blocks.{index}"
        for name, value in block.env.items():
            # Prepending or appending an empty value has no effect.
            used = value if block.mode in ("set", "default") else "x"
            yield from _variable(f"{key}.env.{name}", name, used)
            texts[f"{key}.env.{name}"] = str(value)
    lines = {
        "setup": profile.setup,
        "launchers.srun_args": profile.launchers.srun_args,
        "launchers.mpirun_args": profile.launchers.mpirun_args,
        "containers.setup": boxes.setup if boxes else (),
        "containers.args": boxes.args if boxes else (),
    }
    texts |= {f"{key}.{i}": text for key, given in lines.items() for i, text in enumerate(given)}
    for key, text in texts.items():
        if found := secret_in(key, text):
            yield Mistake(key, found[0], named_by_users(found[1]))


def _variable(key: str, name: str, value: object) -> Mistakes:
    if not is_variable(name):
        yield Mistake(key, f"{name!r} is not a name of an environment variable")
    if looks_secret(name, value):
        yield Mistake(key, f"{key} looks like a secret, {KEPT}", named_by_users(name))
    if is_reserved(name):
        yield Mistake(key, f"{key}: the script or bash sets {name} itself")
    if value == "" and why_not_empty(name):
        yield Mistake(key, f"{key} is empty: {why_not_empty(name)}")


def _options(site: SourcedSite) -> Mistakes:
    """Find options of Slurm that do not exist."""
    profile, known = site.value, sbatch_grammar().long
    plugins = profile.plugin_options
    for name, value in profile.directives.items():
        if problem := directive_problem(name, value, plugins):
            key = f"directives.{name}"
            yield Mistake(key, f"{key}: {problem[0]}", problem[1])
    letters = find_batch_system(profile.scheduler).letters
    said = [(f"forbidden.{option}", option) for option in profile.forbidden]
    for key, option in said:
        is_letter = letters and not option[1:]
        if not is_letter and option not in known and option not in plugins:
            near = nearest(option.lstrip("-").replace("_", "-"), known)
            text = f"{key}: sbatch has no option {option!r}{near}"
            yield Mistake(key, text, "write long names, without leading dashes")


def _queues(site: SourcedSite) -> Mistakes:
    """Find duplicate names, two defaults, empty ranges, and unknown names."""
    profile = site.value
    yield from _list(site, "partitions", profile.partitions)
    yield from _list(site, "qos", profile.qos)
    names = [partition.name for partition in profile.partitions]
    levels = [qos.name for qos in profile.qos]
    for index, partition in enumerate(profile.partitions):
        for name, text in _contradictions(partition):
            key = f"partitions.{index}.{name}"
            yield Mistake(key, f"{key}: {text}")
        if partition.select and partition.select.qos:
            key = f"partitions.{index}.select.qos"
            yield from _unknown(key, "qos", partition.select.qos, levels)
    for index, qos in enumerate(profile.qos):
        for name in qos.partitions:
            yield from _unknown(f"qos.{index}.partitions", "partition", name, names)
    defaults = [one.name for one in profile.partitions if one.default]
    choice = profile.partition_choice
    if defaults and choice == "job":
        yield Mistake(
            "partition_choice", f"partition_choice: job, but {defaults[0]} is the default"
        )


def _list(site: SourcedSite, key: str, items: Sequence[Partition | Qos]) -> Mistakes:
    for index, item in enumerate(items):
        for before, other in enumerate(items[:index]):
            if item.name == other.name:
                text = f"{key}: duplicate name {item.name!r} ({site.near(f'{key}.{before}.name')})"
                yield Mistake(f"{key}.{index}.name", text)
            # Each partition may have its own default quality of service.
            ours, theirs = getattr(item, "partitions", ()), getattr(other, "partitions", ())
            apart = ours and theirs and not set(ours) & set(theirs)
            if item.default and other.default and not apart:
                first = f"{other.name} ({site.near(f'{key}.{before}.default')})"
                text = f"two defaults: {first} and {item.name}"
                yield Mistake(f"{key}.{index}.default", text)


# Keys of a partition, of which the first must not exceed the second.
_PAIRS = (
    ("min_nodes", "max_nodes"),
    ("min_gpus", "max_gpus"),
    ("min_time", "max_time"),
    ("default_time", "max_time"),
)


def _contradictions(given: Partition) -> Iterator[tuple[str, str]]:
    """Yield keys of a partition, and what is wrong with their values."""
    for low, high in _PAIRS:
        least, most = getattr(given, low), getattr(given, high)
        if least is not None and most is not None and least > most:
            yield low, f"{low} = {least}, but {high} = {most}"
    if given.nodes and given.max_nodes and given.max_nodes > given.nodes:
        yield "max_nodes", f"max_nodes = {given.max_nodes} of {given.nodes} nodes"
    gpus = given.gpus_per_node or 0
    if given.gpu_order and sorted(given.gpu_order) != list(range(gpus)):
        yield "gpu_order", f"gpu_order must name each GPU of 0 to {gpus - 1} once"


def _account(site: SourcedSite) -> Mistakes:
    pattern, example = site.value.account.pattern, site.value.account.example
    if pattern is None:
        return
    key = "account.pattern"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as failure:
        yield Mistake(key, f"{key}: invalid regular expression: {failure}")
    if example is not None and not whole_match(pattern, example):
        yield Mistake("account.example", f"account.example: {example!r} does not match the pattern")


_HOST_METHODS = (
    "loopback", "first-host", "batch-host", "hostname-ip", "resolver", "address:N",
    "remote-address:N", "interface:NAME",
)  # fmt: skip
_LAST_PORT = 65535


def _rendezvous(site: SourcedSite) -> Mistakes:
    meeting, batch = site.value.rendezvous, find_batch_system(site.value.scheduler)
    key, host = "rendezvous.host", meeting.host
    if not re.fullmatch(HOST_METHOD, host):
        allowed = f"{nearest(host, _HOST_METHODS)}; allowed: {', '.join(_HOST_METHODS)}"
        yield Mistake(key, f"{key}: {host!r} is not a method{allowed} (N from 1 to 9)")
    if batch.host_list and (host != "first-host" or meeting.suffix):
        yield Mistake(
            key,
            f"{key}: the ranks of a list of hosts use the address of its first host, not {host}",
            "state the address of each host: hosts: [{name: gpu1, address: 10.0.0.11}]",
        )
    last = meeting.port + meeting.ports - 1
    if last > _LAST_PORT:
        text = f"ports {meeting.port} to {last}, but the last port is {_LAST_PORT}"
        hint = f"ports: {_LAST_PORT - meeting.port + 1} or fewer"
        yield Mistake("rendezvous.ports", text, hint)


_SCRIPTED = ("gcp-tcpxo", "gcp-gib")
_WITHOUT_FABRIC = ("nccl", "gpus", "script")


def _network(site: SourcedSite) -> Mistakes:
    """Find keys without effect, and missing keys that every job needs."""
    network = site.value.network
    if network is None:
        return
    fabric = network.fabric
    for name, value in msgspec.structs.asdict(network).items():
        if fabric is None and value not in (None, (), False) and name not in _WITHOUT_FABRIC:
            text = f"network.{name} has no effect without network.fabric"
            hint = "add network.fabric, or set variables with env or env_blocks"
            yield Mistake(f"network.{name}", text, hint)
    if fabric in _SCRIPTED and network.script is None:
        text = "the vendor's script of settings, by its whole path"
        yield Mistake("network.fabric", f"network.fabric {fabric} needs network.script: {text}")


def _blocks(site: SourcedSite) -> Mistakes:
    """Find blocks for launchers and partitions that the profile does not have."""
    partitions = [one.name for one in site.value.partitions]
    for index, block in enumerate(site.value.env_blocks):
        key = f"env_blocks.{index}"
        for name, known in (("launcher", site.value.launchers.allowed), ("partition", partitions)):
            wanted = getattr(block.when, name) or ()
            for word in (wanted,) if isinstance(wanted, str) else wanted:
                yield from _unknown(f"{key}.when.{name}", name, word, known)


def _hosts(site: SourcedSite) -> Mistakes:
    """Find a list of hosts that is empty, names a host twice, or mixes kinds of machines."""
    profile, hosts = site.value, site.value.hosts
    if not find_batch_system(profile.scheduler).host_list:
        for key in ("hosts", "shared", "workdir"):
            if key in site.origins:
                text = f"{key}: the scheduler {profile.scheduler} has its own hosts"
                yield Mistake(key, text, "scheduler: hosts reaches the machines of a list by ssh")
        return
    if not hosts:
        yield Mistake(
            "hosts",
            f"hosts: the scheduler {profile.scheduler} needs a list of machines",
            "hosts: [{name: gpu1, address: 10.0.0.11}, {name: gpu2, address: 10.0.0.12}], or: "
            "hpctrain site init --hosts gpu1,gpu2",
        )
    for index, host in enumerate(hosts):
        for before, other in enumerate(hosts[:index]):
            yield from _two_hosts(site, before, other, index, host)
    gpus = [host.gpus for host in hosts if host.gpus is not None]
    there = f"the list has {len(hosts)} host{'s' * (len(hosts) > 1)} ({site.near('hosts')})"
    for index, partition in enumerate(profile.partitions):
        key, count = f"partitions.{index}.gpus_per_node", partition.gpus_per_node
        if gpus and count not in (None, *gpus):
            yield Mistake(key, f"gpus_per_node: {count}, but each of the hosts has {gpus[0]}")
        if (partition.max_nodes or 0) > len(hosts):
            text = f"max_nodes: {partition.max_nodes}, but {there}"
            yield Mistake(f"partitions.{index}.max_nodes", text)


def _two_hosts(site: SourcedSite, before: int, first: Host, index: int, host: Host) -> Mistakes:
    """Find what two hosts share, or do not: each job has the same number of GPUs on all hosts.

    A host that is listed twice would get the ranks of two; one lock would hold up both.
    """
    same = {"name": host.name == first.name, "address": host.reached == first.reached}
    for key in (key for key, found in same.items() if found):
        word = host.name if key == "name" else host.reached
        place = site.near(f"hosts.{before}.{key}")
        text = f"hosts: {key} {word!r} is listed twice ({place})"
        yield Mistake(f"hosts.{index}.{key}", text, "list each machine once")
    if None not in (host.gpus, first.gpus) and host.gpus != first.gpus:
        yield Mistake(
            f"hosts.{index}.gpus",
            f"{host.name} has {host.gpus} GPUs and {first.name} has {first.gpus}: a job has the "
            "same number on each host",
            "write one profile for each kind of machine, or state the smallest number for all",
        )
