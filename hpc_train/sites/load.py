"""A profile's files -> SiteProfile, checked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec

from hpc_train.base.decode import decode
from hpc_train.base.errors import SiteProfileError, nearest
from hpc_train.base.regex import whole_match
from hpc_train.base.registry import BUILT_IN, names, resolve
from hpc_train.base.slurm_options import directive_problem, sbatch_grammar
from hpc_train.base.value import Sourced, Value, parts, within
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
from hpc_train.sites.partition import ANY, HOST_METHOD, EnvBlock, Network, Partition, Qos
from hpc_train.sites.profile import SiteProfile, SourcedSite
from hpc_train.sites.search import find_profile

_OF_HOSTS = frozenset(("hosts", "shared", "workdir"))


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

    A `local` site is completed with the facts of `machine` (default: this one).

    Raises:
        UnknownNameError: no profile of that name.
        SiteProfileError: the profile is invalid, with file:line; or it is a family.
    """
    path = named if isinstance(named, Path) else find_profile(named)
    whole = read_profile(path)
    if isinstance(whole.values, dict) and whole.values.get("family") is True:
        raise SiteProfileError(
            f"{whole.origins['family']}: {path.stem} is a family, which only profiles can extend",
            f"write a profile with `extends: {path.stem}`, or: hpctrain site list",
        )
    site = decode(whole.values, SiteProfile, whole.origins, SiteProfileError)
    _check_scheduler(site)
    _check_launchers(site)
    _check_name(site, path)
    check_variables(site)
    check_words(site)
    check_queues(site)
    check_rendezvous(site)
    check_network(site)
    check_blocks(site)
    batch = find_batch_system(site.value.scheduler)
    if batch.check:
        cast(Callable[[SourcedSite], None], resolve(batch.check))(site)
    if batch.host_list or not _OF_HOSTS.isdisjoint(site.origins):
        # Few profiles have such a list: each module costs a login node several file accesses.
        from hpc_train.sites.host_list import check_hosts, with_hosts

        check_hosts(site)
        return with_hosts(site)
    if batch.this_machine:
        return _on_this_machine(site, machine or this_machine())
    return site


def _check_scheduler(site: SourcedSite) -> None:
    """The scheduler of a profile is the name of an executor, ours or a plug-in's."""
    wanted = site.value.scheduler
    if wanted not in BUILT_IN["executors"] and wanted not in (known := names("executors")):
        raise SiteProfileError(
            f"{site.origin('scheduler')}: scheduler: must be one of {', '.join(known)}, not "
            f"{wanted!r}{nearest(wanted, known)}"
        )


def _check_launchers(site: SourcedSite) -> None:
    launchers = site.value.launchers
    place = site.origin("launchers.default")
    if launchers.default in launchers.forbidden:
        raise SiteProfileError(f"{place}: the default launcher {launchers.default!r} is forbidden")
    if launchers.default not in launchers.allowed:
        raise SiteProfileError(
            f"{place}: the default launcher {launchers.default!r} is not among the allowed: "
            f"{', '.join(launchers.allowed)}"
        )
    refused = find_batch_system(site.value.scheduler).refused
    for index, name in enumerate(launchers.allowed):
        if name in refused:
            left = [one for one in launchers.allowed if one not in refused]
            others = left or [one for one in names("launchers") if one not in refused]
            raise SiteProfileError(
                f"{site.near(f'launchers.allowed.{index}')}: launchers.allowed: {name}: "
                f"{refused[name]}",
                f"allowed: [{', '.join(others)}]",
            )
        if name in launchers.forbidden:
            raise SiteProfileError(
                f"{site.near(f'launchers.forbidden.{name}')}: {name} is allowed and forbidden"
            )


def _check_name(site: SourcedSite, path: Path) -> None:
    """A profile is found by its file name, so the name in it must be equal."""
    if site.value.name != path.stem:
        raise SiteProfileError(
            f"{site.origin('name')}: the name {site.value.name!r} is not that of the file, "
            f"{path.stem!r}"
        )


def _on_this_machine(site: SourcedSite, machine: Machine) -> SourcedSite:
    given = site.value.partitions[0] if site.value.partitions else Partition(name="machine")
    origins = dict(site.origins)
    facts = {"cpus_per_node": machine.cpus, "gpus_per_node": machine.gpus}
    missing = {key: value for key, value in facts.items() if getattr(given, key) is None}
    origins.update({f"partitions.0.{key}": "this machine" for key in missing})
    partition = msgspec.structs.replace(given, default=True, **missing)
    value = msgspec.structs.replace(site.value, partitions=(partition,))
    return Sourced(value=value, origins=origins)


Queue = Partition | Qos

_PAIRS = (("min_nodes", "max_nodes"), ("min_gpus", "max_gpus"), ("min_time", "max_time"))


def check_queues(site: SourcedSite) -> None:
    """Refuse duplicate names, two defaults, empty ranges, and unknown names.

    Raises:
        SiteProfileError: with file:line.
    """
    profile = site.value
    _check_list(site, "partitions", profile.partitions)
    _check_list(site, "qos", profile.qos)
    for index, partition in enumerate(profile.partitions):
        _check_partition(site, partition, f"partitions.{index}")
    names = [partition.name for partition in profile.partitions]
    for index, qos in enumerate(profile.qos):
        for name in qos.partitions:
            if name not in names and ANY not in names:
                raise SiteProfileError(
                    f"{site.near(f'qos.{index}.partitions')}: qos {qos.name}: unknown partition "
                    f"{name!r}{nearest(name, names)}; known: {', '.join(names) or 'none'}"
                )
    _check_choice(site)
    _check_account(site)


def _check_list(site: SourcedSite, key: str, items: Sequence[Queue]) -> None:
    seen: dict[str, int] = {}
    defaults: list[int] = []
    for index in range(len(items)):
        item: Queue = items[index]
        if item.name in seen:
            first = site.near(f"{key}.{seen[item.name]}.name")
            raise SiteProfileError(
                f"{site.near(f'{key}.{index}.name')}: {key}: duplicate name {item.name!r} ({first})"
            )
        seen[item.name] = index
        if item.default:
            for other in defaults:
                _check_default(site, key, items, (other, index))
            defaults.append(index)


def _check_default(
    site: SourcedSite, key: str, items: Sequence[Queue], pair: tuple[int, int]
) -> None:
    """Each partition may have its own default quality of service."""
    first, second = pair
    ours, theirs = _partitions(items[second]), _partitions(items[first])
    if not ours or not theirs or ours & theirs:
        raise SiteProfileError(
            f"{site.near(f'{key}.{second}.default')}: two defaults: {items[first].name} "
            f"({site.near(f'{key}.{first}.default')}) and {items[second].name}"
        )


def _partitions(item: Queue) -> set[str]:
    return set(item.partitions) if isinstance(item, Qos) else set()


def _check_partition(site: SourcedSite, partition: Partition, key: str) -> None:
    for low, high in _PAIRS:
        least, most = getattr(partition, low), getattr(partition, high)
        if least is not None and most is not None and least > most:
            _refuse(site, f"{key}.{low}", f"{low} = {least}, but {high} = {most}")
    facts = partition
    if facts.nodes and facts.max_nodes and facts.max_nodes > facts.nodes:
        _refuse(site, f"{key}.max_nodes", f"max_nodes = {facts.max_nodes} of {facts.nodes} nodes")
    if facts.default_time and facts.max_time and facts.default_time > facts.max_time:
        _refuse(
            site,
            f"{key}.default_time",
            f"default_time = {facts.default_time}, but max_time = {facts.max_time}",
        )
    _check_shares(site, partition, key)
    gpus = facts.gpus_per_node or 0
    if facts.gpu_order and sorted(facts.gpu_order) != list(range(gpus)):
        _refuse(site, f"{key}.gpu_order", f"gpu_order must name each GPU of 0 to {gpus - 1} once")
    if facts.gpu_nics and len(facts.gpu_nics) != gpus:
        message = f"gpu_nics must have the nearest adapters of each of the {gpus} GPUs"
        _refuse(site, f"{key}.gpu_nics", message)
    strange = [number for number in facts.gpu_numa if number >= len(facts.numa_cpus)]
    if facts.gpu_numa and (strange or len(facts.gpu_numa) != gpus):
        message = f"gpu_numa must have one of the {len(facts.numa_cpus)} NUMA nodes of numa_cpus"
        _refuse(site, f"{key}.gpu_numa", f"{message} for each of the {gpus} GPUs")


def _check_shares(site: SourcedSite, partition: Partition, key: str) -> None:
    """Check that the shares of all GPUs of a node do not exceed the node."""
    for share, whole in (("cpus_per_gpu", "cpus_per_node"), ("mem_per_gpu", "mem_per_node")):
        each, there = getattr(partition, share), getattr(partition, whole)
        gpus = partition.gpus_per_node
        if each and there and gpus and each * gpus > there:
            product = type(each)(each * gpus)
            _refuse(
                site, f"{key}.{share}", f"{share} x {gpus} GPUs = {product}, but {whole} = {there}"
            )


def _check_choice(site: SourcedSite) -> None:
    profile = site.value
    defaults = [one.name for one in profile.partitions if one.default]
    if defaults and profile.partition_choice == "job":
        _refuse(site, "partition_choice", f"job, but {defaults[0]} is the default")
    if profile.partition_choice == "fitting" and not profile.partitions:
        _refuse(site, "partition_choice", "fitting, but there are no partitions to choose from")
    if any(one.name == ANY and one.default for one in profile.partitions):
        _refuse(site, "partitions", f"{ANY!r} is a wildcard, and cannot be the default")


def _check_account(site: SourcedSite) -> None:
    account = site.value.account
    if account.pattern is None:
        return
    try:
        re.compile(account.pattern)
    except (re.error, OverflowError, RecursionError) as failure:
        _refuse(site, "account.pattern", f"invalid regular expression: {failure}")
    if account.example is not None and not whole_match(account.pattern, account.example):
        _refuse(site, "account.example", f"{account.example!r} does not match the pattern")


def _refuse(site: SourcedSite, key: str, text: str) -> NoReturn:
    raise SiteProfileError(f"{site.near(key)}: {key}: {text}")


# Launchers of other tools; a profile may state why they are forbidden.
_FOREIGN = ("torchrun_jsc",)


def check_words(site: SourcedSite) -> None:
    """Refuse options, launchers and qualities of service that do not exist.

    Raises:
        SiteProfileError: with file:line and the nearest name.
    """
    plugins = site.value.plugin_options
    for name in plugins:
        if name in sbatch_grammar().long:
            place = site.near(f"plugin_options.{name}")
            raise SiteProfileError(
                f"{place}: plugin_options: --{name} is an option of Slurm or pyxis", "leave it out"
            )
    letters = find_batch_system(site.value.scheduler).letters
    for name, value in site.value.directives.items():
        problem = directive_problem(name, value, plugins)
        if problem:
            place = site.near(f"directives.{name}")
            raise SiteProfileError(f"{place}: directives.{name}: {problem[0]}", problem[1])
    for key, option in _options(site.value):
        known = sbatch_grammar().long
        if letters and not option[1:]:
            continue
        if option not in known and option not in plugins:
            near = nearest(option.lstrip("-").replace("_", "-"), known)
            raise SiteProfileError(
                f"{site.near(key)}: {key}: sbatch has no option {option!r}{near}",
                "write long names, without leading dashes",
            )
    for index, key in enumerate(site.value.required):
        if key in site.value.forbidden:
            raise SiteProfileError(
                f"{site.near(f'required.{index}')}: {key} is required, but forbidden "
                f"({site.near(f'forbidden.{key}')})"
            )
    _check_launcher_names(site)
    _check_qos(site)


def _options(profile: SiteProfile) -> Iterator[tuple[str, str]]:
    for option in profile.forbidden:
        yield f"forbidden.{option}", option
    for name, storage in profile.storage.items():
        for option in storage.request:
            yield f"storage.{name}.request.{option}", option


def _check_launcher_names(site: SourcedSite) -> None:
    launchers = site.value.launchers
    said = [(key, name) for key in ("forbidden", "warned") for name in getattr(launchers, key)]
    # The search for plug-ins costs more than everything else in a profile.
    if all(name in (*BUILT_IN["launchers"], *_FOREIGN) for _, name in said):
        return
    known = (*names("launchers"), *_FOREIGN)
    for key, name in said:
        if name not in known:
            raise SiteProfileError(
                f"{site.near(f'launchers.{key}.{name}')}: launchers.{key}: unknown launcher "
                f"{name!r}{nearest(name, known)}; known: {', '.join(known)}"
            )


def _check_qos(site: SourcedSite) -> None:
    known = [qos.name for qos in site.value.qos]
    for index, partition in enumerate(site.value.partitions):
        qos = partition.select.qos if partition.select else None
        if qos is not None and known and qos not in known and ANY not in known:
            key = f"partitions.{index}.select.qos"
            raise SiteProfileError(
                f"{site.near(key)}: {key}: unknown qos {qos!r}{nearest(qos, known)}; "
                f"known: {', '.join(known)}"
            )


def check_variables(site: SourcedSite) -> None:
    """Refuse invalid names, variables that the script sets itself, and secrets.

    Raises:
        SiteProfileError: with file:line; the message does not contain the secret.
    """
    for name, value in site.value.env.items():
        _check(site, "env", name, value)
    for name, value in (site.value.internet.env if site.value.internet else {}).items():
        _check(site, "internet.env", name, value)
    for index, block in enumerate(site.value.env_blocks):
        _check_block(site, block, f"env_blocks.{index}")
    for key, text in _texts(site):
        found = secret_in(key, text)
        if found:
            raise SiteProfileError(f"{site.near(key)}: {found[0]}", named_by_users(found[1]))


def _check_block(site: SourcedSite, block: EnvBlock, key: str) -> None:
    for name in filter(is_reserved, (*block.env, *block.unset)):
        raise SiteProfileError(f"{site.near(key)}: {key}: the script or bash sets {name} itself")
    for name, value in block.env.items():
        # Prepending or appending an empty value has no effect.
        _check(site, f"{key}.env", name, value if block.mode in ("set", "default") else "x")
        if name in block.unset:
            place = site.near(f"{key}.env.{name}")
            raise SiteProfileError(f"{place}: {key} sets and unsets {name}")
    for name in filter(why_not_empty, block.unset):
        place = site.near(f"{key}.unset")
        raise SiteProfileError(f"{place}: {key}.unset: {name}: {why_not_empty(name)}")


def _check(site: SourcedSite, key: str, name: str, value: object) -> None:
    place = site.near(f"{key}.{name}")
    if not is_variable(name):
        raise SiteProfileError(f"{place}: {name!r} is not a name of an environment variable")
    if looks_secret(name, value):
        raise SiteProfileError(
            f"{place}: {key}.{name} looks like a secret, {KEPT}", named_by_users(name)
        )
    if is_reserved(name):
        raise SiteProfileError(f"{place}: {key}.{name}: the script or bash sets {name} itself")
    if value == "" and why_not_empty(name):
        raise SiteProfileError(f"{place}: {key}.{name} is empty: {why_not_empty(name)}")


def _texts(site: SourcedSite) -> Iterator[tuple[str, str]]:
    """Yield all texts that are written unchanged, with their keys."""
    profile, boxes = site.value, site.value.containers
    values = [("env", profile.env)]
    values += [(f"env_blocks.{i}.env", block.env) for i, block in enumerate(profile.env_blocks)]
    for key, env in values:
        for name, value in env.items():
            yield f"{key}.{name}", str(value)
    lines = {
        "setup": profile.setup,
        "launchers.srun_args": profile.launchers.srun_args,
        "launchers.mpirun_args": profile.launchers.mpirun_args,
        "containers.setup": boxes.setup if boxes else (),
        "containers.args": boxes.args if boxes else (),
    }
    for key, texts in lines.items():
        for number, text in enumerate(texts):
            yield f"{key}.{number}", text


_HOST_METHODS = (
    "loopback",
    "first-host",
    "batch-host",
    "hostname-ip",
    "resolver",
    "address:N",
    "remote-address:N",
    "interface:NAME",
)
_LAST_PORT = 65535
_WITH_NAME = ("first-host", "batch-host", "resolver")
_VERBS = ("infiniband", "roce")
_SCRIPTED = ("gcp-tcpxo", "gcp-gib")
# Key of the network -> the fabrics that use it; all fabrics use the other keys.
_ONLY = {
    "hcas": _VERBS,
    "gdr_level": (*_VERBS, "slingshot"),
    "gid_index": ("roce",),
    "traffic_class": ("roce",),
    "alt_read": ("slingshot",),
    "ip_over_ib": ("infiniband",),
}
_WITHOUT_FABRIC = ("nccl", "gpus", "torch_mpi", "script")


def check_network(site: SourcedSite) -> None:
    """Refuse keys without effect, and missing keys that every job needs.

    Raises:
        SiteProfileError: with file:line.
    """
    network = site.value.network
    if network is None:
        return
    for key in _given(network):
        _check_key(site, network, key)
    if network.fabric in _SCRIPTED and network.script is None:
        raise SiteProfileError(
            f"{site.near('network.fabric')}: network.fabric {network.fabric} needs network.script: "
            "the vendor's script of settings, by its whole path"
        )
    if network.interfaces and network.exclude_interfaces:
        raise SiteProfileError(
            f"{site.near('network.exclude_interfaces')}: "
            "use either network.interfaces or network.exclude_interfaces"
        )
    if network.gid_index is not None:
        _check_gid(site, network)


def check_blocks(site: SourcedSite) -> None:
    """Refuse blocks without effect or with contradictions.

    Raises:
        SiteProfileError: with file:line.
    """
    for index, block in enumerate(site.value.env_blocks):
        key = f"env_blocks.{index}"
        _check_content(site, block, key)
        _check_words(site, block, key)


def _given(network: Network) -> list[str]:
    plain = msgspec.structs.asdict(network)
    return [key for key, value in plain.items() if value not in (None, (), False)]


def _check_key(site: SourcedSite, network: Network, key: str) -> None:
    place = site.near(f"network.{key}")
    if network.fabric is None and key not in _WITHOUT_FABRIC:
        raise SiteProfileError(
            f"{place}: network.{key} has no effect without network.fabric",
            "add network.fabric, or set variables with env or env_blocks",
        )
    fabrics = _ONLY.get(key)
    if fabrics and network.fabric not in fabrics:
        raise SiteProfileError(
            f"{place}: network.{key} has no effect with fabric {network.fabric}; "
            f"it belongs to {' or '.join(fabrics)}"
        )


def _check_gid(site: SourcedSite, network: Network) -> None:
    place = site.near("network.gid_index")
    if network.nccl is None or not within(parts(network.nccl), "<2.21"):
        raise SiteProfileError(
            f"{place}: network.gid_index is for NCCL below 2.21, which cannot choose it; "
            f"network.nccl is {network.nccl or 'not given'}",
            "remove it, or add network.nccl",
        )


def _check_content(site: SourcedSite, block: EnvBlock, key: str) -> None:
    if not block.env and not block.unset:
        raise SiteProfileError(f"{site.near(key)}: {key}: env or unset is required")
    if block.already_set_by is not None and block.unset:
        raise SiteProfileError(
            f"{site.near(f'{key}.unset')}: {key}.unset has no effect with already_set_by"
        )
    if block.separator != ":" and block.mode not in ("prepend", "append"):
        raise SiteProfileError(
            f"{site.near(f'{key}.separator')}: {key}.separator has no effect with mode "
            f"{block.mode}; it belongs to prepend or append"
        )


def _check_words(site: SourcedSite, block: EnvBlock, key: str) -> None:
    """Refuse a launcher or partition that does not exist."""
    known: dict[str, tuple[Any, tuple[str, ...]]] = {
        "launcher": (block.when.launcher, site.value.launchers.allowed),
        "partition": (block.when.partition, tuple(one.name for one in site.value.partitions)),
    }
    for name, (wanted, allowed) in known.items():
        words = (wanted,) if isinstance(wanted, str) else wanted or ()
        for word in words:
            if allowed and word not in allowed and ANY not in allowed:
                path = f"{key}.when.{name}"
                raise SiteProfileError(
                    f"{site.near(path)}: {path}: unknown {name} {word!r}{nearest(word, allowed)}; "
                    f"known: {', '.join(allowed)}"
                )


def check_rendezvous(site: SourcedSite) -> None:
    """Refuse an unknown method, and a suffix of an address.

    Raises:
        SiteProfileError: with the nearest method.
    """
    meeting = site.value.rendezvous
    where = site.near("rendezvous.host")
    if not re.fullmatch(HOST_METHOD, meeting.host):
        raise SiteProfileError(
            f"{where}: rendezvous.host: {meeting.host!r} is none"
            f"{nearest(meeting.host, _HOST_METHODS)}; allowed: {', '.join(_HOST_METHODS)} "
            "(N from 1 to 9)"
        )
    batch = find_batch_system(site.value.scheduler)
    if meeting.host.startswith("remote-address:") and batch.starter and not batch.steps:
        raise SiteProfileError(
            f"{where}: rendezvous.host: {meeting.host} asks the first node with srun, which "
            f"{batch.title} does not have",
            f"{meeting.host.removeprefix('remote-')}: the script runs on the first node",
        )
    last = meeting.port + meeting.ports - 1
    if last > _LAST_PORT:
        raise SiteProfileError(
            f"{site.near('rendezvous.ports')}: ports {meeting.port} to {last}, but the last port "
            f"is {_LAST_PORT}",
            f"ports: {_LAST_PORT - meeting.port + 1} or fewer",
        )
    if meeting.suffix and meeting.host not in _WITH_NAME:
        raise SiteProfileError(
            f"{site.near('rendezvous.suffix')}: "
            f"a suffix needs a host name, which {meeting.host} does not give; use it with "
            f"{', '.join(_WITH_NAME)}"
        )
