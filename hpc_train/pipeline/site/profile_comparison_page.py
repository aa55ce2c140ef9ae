"""The shipped profiles side by side, as a page of the documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hpc_train.data_folders import profile_folder
from hpc_train.model.partition import Partition
from hpc_train.model.site import SiteProfile
from hpc_train.pipeline.site.show import confidence_of
from hpc_train.sites.load import load_site

UNKNOWN = "?"
_HEAD = """\
# The shipped sites side by side

One row per shipped profile, generated from the profiles by `hpctrain site list --markdown`. `?`
means unknown; `site show NAME --origin` prints file, line and source of each value.
[operators.md](operators.md) compares the rendered jobs with those that the operators publish.
Hosts are those on which a command without `--site` uses the profile
([writing-a-site.md](writing-a-site.md#detection)); on the others, name it.

"""


def site_matrix() -> str:
    """Return the page, in Markdown."""
    profiles = [
        load_site(path).value
        for path in sorted(profile_folder().glob("*.yaml"))
        if path.stem != "local"
    ]
    rows = [_row("Site", *_COLUMNS), _row(*["---"] * (len(_COLUMNS) + 1))]
    rows += [_row(one.name, *(_of(one, make) for make in _COLUMNS.values())) for one in profiles]
    return _HEAD + "".join(rows)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _of(profile: SiteProfile, make: Callable[[SiteProfile], str]) -> str:
    return make(profile) or UNKNOWN


def _launch(profile: SiteProfile) -> str:
    launchers = profile.launchers
    first = [launchers.default, *(one for one in launchers.allowed if one != launchers.default)]
    forbidden = f"; not {', '.join(launchers.forbidden)}" if launchers.forbidden else ""
    return ", ".join(first[:3]) + (", …" if len(first) > 3 else "") + forbidden


def _gpus(profile: SiteProfile) -> str:
    return _each(
        profile,
        lambda one: (
            f"{one.gpus_per_node} {one.gpu_model or one.gpu_type or 'GPUs'}"
            if one.gpus_per_node
            else ""
        ),
    )


def _gpu_request(profile: SiteProfile) -> str:
    typed = " with type" if profile.gpu_request_typed else ""
    constraint = any(one.select and one.select.constraint for one in profile.partitions)
    return profile.gpu_request + typed + (" and constraint" if constraint else "")


def _cpus(profile: SiteProfile) -> str:
    texts = {"share": "", "exact": " exactly", "max": " at most"}
    return _each(
        profile,
        lambda one: f"{one.cpus_per_gpu}/GPU{texts[one.cpu_rule]}" if one.cpus_per_gpu else "",
    ) or _each(profile, lambda one: f"{one.cpus_per_node}/node" if one.cpus_per_node else "")


def _memory(profile: SiteProfile) -> str:
    each = _each(profile, lambda one: f"{one.mem_per_gpu}/GPU" if one.mem_per_gpu else "")
    return ", ".join(filter(None, (profile.mem_request, each)))


def _sockets(profile: SiteProfile) -> str:
    network = profile.network
    if network is None:
        return ""
    if network.exclude_interfaces:
        return f"^{','.join(network.exclude_interfaces)}"
    own = _each(profile, lambda one: ",".join(one.interfaces))
    return own or ",".join(network.interfaces)


def _fabric(profile: SiteProfile) -> str:
    return (profile.network.fabric if profile.network else None) or ""


def _rendezvous(profile: SiteProfile) -> str:
    rendezvous = profile.rendezvous
    return rendezvous.host + (f" + {rendezvous.suffix!r}" if rendezvous.suffix else "")


def _hosts(profile: SiteProfile) -> str:
    detect = profile.detect
    if detect is None:
        return ""
    variables = [f"{name}={value}" for name, value in detect.env.items()]
    return ", ".join((*variables, *detect.clusters, *detect.hosts))


def _verified(profile: SiteProfile) -> str:
    return ", ".join(filter(None, (profile.verified_on, confidence_of(profile))))


def _each(profile: SiteProfile, text_of: Callable[[Partition], str]) -> str:
    """Return the texts of all partitions, without duplicates."""
    return " / ".join(_once(text_of(partition) for partition in profile.partitions))


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, texts)))


_COLUMNS: dict[str, Callable[[SiteProfile], str]] = {
    "Launchers": _launch,
    "GPUs of a node": _gpus,
    "GPU request": _gpu_request,
    "CPUs": _cpus,
    "Memory": _memory,
    "Sockets": _sockets,
    "Fabric": _fabric,
    "Rendezvous": _rendezvous,
    "Internet": lambda profile: profile.internet.access if profile.internet else "",
    "Hosts": _hosts,
    "Verified": _verified,
}
