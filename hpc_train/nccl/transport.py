"""Transport and the network of the site profile -> Transport with verdict and findings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.base.errors import HpcTrainError, LogParseError
from hpc_train.base.files import is_folder
from hpc_train.base.values import Severity
from hpc_train.logs.line_dispatch import dispatch
from hpc_train.logs.log_file import log_files, open_log
from hpc_train.nccl.read_nccl_lines import Tally, TransportReader
from hpc_train.runs.conditions import Adapter, Transport, TransportFinding
from hpc_train.runs.json_files import read_cache, to_json, write_cache
from hpc_train.runs.run import Run
from hpc_train.sites.partition import Fabric, Network

_SLOW: tuple[Fabric | None, ...] = (None, "ethernet")
# Fabrics for which NCCL needs a plug-in; without it, NCCL uses sockets.
_PLUGINS: dict[Fabric, str] = {
    "slingshot": "aws-ofi-nccl",
    "efa": "aws-ofi-nccl",
    "gcp-tcpx": "GPUDirect-TCPX",
    "gcp-tcpxo": "FasTrak",
    "gcp-gib": "gIB",
}
# The names of the networks of each fabric: prefixes, in lower case.
_NAMES: dict[Fabric, tuple[str, ...]] = {
    "infiniband": ("ib", "ucx", "sharp", "nccl rdma"),
    "roce": ("ib", "ucx", "nccl rdma", "anp", "gib"),
    "slingshot": ("aws libfabric", "libfabric", "ofi"),
    "efa": ("aws libfabric", "libfabric", "ofi"),
    "gcp-tcpx": ("gpudirecttcpx", "tcpx"),
    "gcp-tcpxo": ("fastrak", "gpudirecttcpxo", "tcpxo"),
    "gcp-gib": ("gib", "ib"),
}
_TCP = ("tcp", "sockets", "udp")


def verdict(facts: Transport, promised: Network | None = None) -> Transport:
    """Return the transport with its findings, also of a comparison with the profile's network.

    A run on one node needs no network: its only finding is GPUs without direct access to each
    other.
    """
    network = promised or Network()
    findings = [finding for rule in _RULES for finding in rule(facts, network)]
    return msgspec.structs.replace(facts, verdict=_word_of(facts), findings=tuple(findings))


def _found(
    kind: tuple[str, Severity], message: str, advice: str, evidence: tuple[str, ...]
) -> TransportFinding:
    return TransportFinding(
        id=kind[0], severity=kind[1], message=message, advice=advice, evidence=evidence
    )


def _sockets(facts: Transport, promised: Network) -> Iterator[TransportFinding]:
    if "Socket" not in network_names(facts) or promised.fabric == "ethernet":
        return
    channels = sum(n for kind, n in facts.between_nodes.items() if kind.startswith(SOCKET))
    better = promised.fabric not in _SLOW or bool(facts.adapters)
    over = f" over {', '.join(facts.interfaces[:4])}" if facts.interfaces else ""
    asked = f"; the profile states {promised.fabric}" if promised.fabric else ""
    many = f" ({channels} channels)" if channels else ""
    yield _found(
        ("nccl_socket_transport", "error" if better else "warning"),
        f"NCCL sends data between nodes over TCP sockets{over}{many}{asked}",
        _socket_advice(facts, promised),
        facts.places(SOCKET, "network", "plugin missing", "env"),
    )


def _socket_advice(facts: Transport, promised: Network) -> str:
    for name, value in (("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "Socket")):
        if facts.environment.get(name) == value:
            return f"take {name}={value} out of the environment"
    if promised.fabric in _PLUGINS:
        return f"put {_PLUGINS[promised.fabric]} on LD_LIBRARY_PATH, in the container as well"
    if promised.fabric in ("infiniband", "roce") or facts.adapters:
        return (
            "look for /dev/infiniband and ibv_devinfo on the node and inside the container; "
            "NCCL_IB_HCA must name adapters with an active port"
        )
    return "run `hpctrain doctor` on a node: it lists adapters that NCCL could use"


def _plugins(facts: Transport, promised: Network) -> Iterator[TransportFinding]:
    """Find a plug-in that is missing, and libfabric over TCP."""
    wanted = _PLUGINS.get(promised.fabric) if promised.fabric else None
    if wanted is not None and facts.plugin_missing and facts.nodes != 1:
        yield _found(
            ("nccl_plugin_missing", "error"),
            f"NCCL finds no network plug-in, and {promised.fabric} needs {wanted}",
            "wrong container or LD_LIBRARY_PATH: add the folder with libnccl-net.so to it",
            facts.places("plugin missing"),
        )
    if facts.provider.startswith(_TCP):
        yield _found(
            ("nccl_ofi_tcp", "error"),
            f"libfabric's provider is {facts.provider}: TCP, not the fast network",
            "FI_PROVIDER=efa or cxi, and a libfabric that was built with it",
            facts.places("provider"),
        )


def _gpudirect(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    """Find channels between nodes without GPUDirect RDMA: all of them, or some."""
    direct = {
        kind: n
        for kind, n in facts.between_nodes.items()
        if kind.startswith("NET/") and not kind.startswith(SOCKET)
    }
    have = sum(n for kind, n in direct.items() if kind.endswith(GDR))
    lack = sum(direct.values()) - have
    first = next((kind for kind in direct if not kind.endswith(GDR)), "")
    if direct and not any(kind.endswith(GDR) for kind in direct):
        yield _found(
            ("nccl_no_gpudirect", "warning"),
            f"{fabric_of(first.partition('/')[2], facts)} without GPUDirect RDMA: all "
            f"{lack} channels between nodes go through the host's memory",
            _gdr_advice(facts),
            facts.places(first, "gdr refused", "gdr disabled", "gdr far"),
        )
    elif have and lack:
        where = ", ".join(facts.without_gdr[:6]) + (" …" if len(facts.without_gdr) > 6 else "")
        received = facts.gdr_only_received
        yield _found(
            ("nccl_mixed_gpudirect", "info" if received else "warning"),
            f"GPUDirect RDMA on {have} channels between nodes, not on {lack}: {where}",
            "NCCL reads from GPUs this way only over NVLink or with NCCL_NET_GDR_READ=1"
            if received
            else f"compare these adapters and hosts with the others; {_gdr_advice(facts)}",
            facts.places(first),
        )


def _gdr_advice(facts: Transport) -> str:
    level = facts.environment.get("NCCL_NET_GDR_LEVEL")
    if level in ("0", "LOC"):
        return f"NCCL_NET_GDR_LEVEL={level} turns it off; PHB or PXB allow it"
    if "gdr refused" in facts.first:
        return (
            "the plug-in reports no GPUDirect: this type of node lacks it, or "
            "libfabric was built without it (`fi_info -c FI_HMEM`)"
        )
    if "gdr far" in facts.first:
        return (
            "GPU and adapter are farther apart than NCCL allows: give each rank the GPU beside its "
            "adapter, or raise NCCL_NET_GDR_LEVEL"
        )
    far = f" (it is {level} now)" if level else ""
    return (
        "load nvidia_peermem, or a driver with DMA-BUF, on the nodes; where GPU and adapter are "
        f"far apart, NCCL_NET_GDR_LEVEL must allow it{far}"
    )


def _networks(facts: Transport, promised: Network) -> Iterator[TransportFinding]:
    """Find several networks, and others than that of the profile."""
    names = network_names(facts)
    if len(names) > 1:
        counts = ", ".join(f"{name} {number}" for name, number in names.items())
        yield _found(
            ("nccl_mixed_networks", "warning"),
            f"NCCL sends data between nodes over several networks: {counts}",
            "the nodes differ in adapters, container or plug-in; NCCL_NET selects one",
            facts.places(*facts.between_nodes)[:4],
        )
    wanted = _NAMES.get(promised.fabric) if promised.fabric else None
    if wanted is None:
        return
    others = [n for n in names if not n.lower().startswith((*wanted, "socket")) and n != "MNNVL"]
    if others:
        yield _found(
            ("nccl_unexpected_network", "warning"),
            f"NCCL uses {', '.join(others)}; the profile states {promised.fabric}",
            "correct network.fabric of the profile, or the plug-in that the job loads",
            facts.places("network", "plugin"),
        )


def _through_host(facts: Transport, _promised: Network) -> Iterator[TransportFinding]:
    """Find channels through host memory between GPUs of one node."""
    shared = facts.channels.get("SHM", 0)
    direct = sum(n for kind, n in facts.channels.items() if kind.startswith("P2P/"))
    if not shared:
        return
    off = facts.environment.get("NCCL_P2P_DISABLE") == "1"
    some = f", {direct} do not" if direct else ""
    yield _found(
        # Between CPU sockets of a node with PCIe only, NCCL uses host memory by default.
        ("nccl_p2p_disabled", "warning" if off or facts.nvlink or not direct else "info"),
        f"{shared} channels inside the nodes go through the host's memory (SHM){some}",
        "take NCCL_P2P_DISABLE=1 out of the environment"
        if off
        else "look at `nvidia-smi topo -p2p r`; ACS or an IOMMU that is on, and containers that do "
        "not share /proc and the devices, keep GPUs apart",
        facts.places("SHM"),
    )


_RULES = (_sockets, _plugins, _gpudirect, _networks, _through_host)


SOCKET, GDR = "NET/Socket", "/GDRDMA"
_PROVIDERS = {"efa": "EFA", "cxi": "Slingshot", "tcp": "OFI tcp", "sockets": "OFI tcp"}


def _word_of(facts: Transport) -> str:
    """Return `IB+GDR`, `IB, no GDR`, `RoCE+GDR`, `EFA+GDR`, `sockets`, `NVLink`, `P2P`, `SHM` …

    Between nodes, the label is that of the network alone. `P2P` is GPU to GPU over an unknown link.
    `mixed` is more than one transport. The label is empty if no line contains the transport.
    """
    if facts.between_nodes:
        # NVLink connects some of the nodes, the network the others.
        networks = [kind for kind in facts.between_nodes if kind.startswith("NET/")]
        return _only(_network_word(kind, facts) for kind in networks or facts.between_nodes)
    inside = {kind for kind, number in facts.channels.items() if number}
    if (facts.nodes or 1) > 1 and (facts.using_network or not inside):
        return _only(_network_word(f"NET/{name}", facts) for name in facts.using_network)
    if any(kind.startswith("P2P/") for kind in inside):
        link = "xGMI" if facts.rccl else "NVLink"
        way = link if facts.nvlink else "P2P"
        return f"{way}+SHM" if "SHM" in inside else way
    return "SHM" if inside == {"SHM"} else _only(_network_word(kind, facts) for kind in inside)


def network_names(facts: Transport) -> Mapping[str, int]:
    """Return the networks between nodes, `IB`, `Socket`: by channels, else as selected."""
    counts: dict[str, int] = {}
    for kind, number in facts.between_nodes.items():
        name = kind.removesuffix(GDR).partition("/")[2]
        counts[name] = counts.get(name, 0) + number
    if counts or facts.nodes is None or facts.nodes < 2 or facts.channels:
        return counts
    return facts.using_network


def _only(words: Iterable[str]) -> str:
    different = list(dict.fromkeys(words))
    return different[0] if len(different) == 1 else "mixed" if different else ""


def _network_word(kind: str, facts: Transport) -> str:
    if kind.startswith(SOCKET):
        return "sockets"
    if kind.startswith("P2P/"):
        return "NVLink"
    name = fabric_of(kind.removesuffix(GDR).removeprefix("NET/"), facts)
    if not facts.between_nodes:
        return name
    return f"{name}+GDR" if kind.endswith(GDR) else f"{name}, no GDR"


def fabric_of(name: str, facts: Transport) -> str:
    """Return the common name of a network of NCCL: `RoCE` for `IB` over Ethernet, `EFA`."""
    if name == "IB" or name.startswith(("IBext", "NCCL RDMA")):
        return "RoCE" if {a.link_layer for a in facts.adapters} == {"RoCE"} else "IB"
    if name.endswith("Libfabric") or name.startswith("OFI"):
        provider = facts.provider.partition(";")[0].partition("-")[0]
        return _PROVIDERS.get(provider, "OFI")
    return name


# Logs of a run -> the counts of NCCL's lines -> Transport.

# A name with fewer lines may be a fragment of two interleaved lines.
_LEAST = 5
_MOST = 64


def facts(tally: Tally) -> Transport | None:
    """Return the transport that the lines show; None without a line of NCCL."""
    if not tally.first:
        return None
    stated, largest, counts = tally.facts, tally.largest, tally.counts

    def values(kind: str) -> tuple[str, ...]:
        return tuple(stated.get(kind, ()))[:_MOST]

    def usual(kind: str) -> str:
        return stated[kind].most_common(1)[0][0] if kind in stated else ""

    between, versions = between_nodes(tally), values("version")
    environment = sorted([kind for kind in stated if kind.startswith("env ")][:_MOST])
    return Transport(
        # Without those that are a prefix of another.
        nccl_version=tuple(
            one for one in versions if not any(o != one and o.startswith(one) for o in versions)
        ),
        ranks=int(largest["ranks"]) if "ranks" in largest else None,
        nodes=nodes_of(tally, between),
        hosts=hosts_of(tally),
        using_network=dict(stated.get("network", {})),
        channels=dict(tally.channels.most_common()),
        between_nodes=dict(between.most_common()),
        nvlink=_nvlink(tally),
        rccl="rccl" in stated,
        adapters=tuple(
            Adapter(name=name, link_layer=layer)
            for name, layer, *_ in (text.split("/") for text in values("adapter"))
        ),
        interfaces=values("interface"),
        plugins=values("plugin"),
        plugin_missing="plugin missing" in stated and "plugin" not in stated,
        ofi_version=usual("ofi"),
        provider=usual("provider"),
        without_gdr=tuple(sorted(tally.without_gdr)[:_MOST]),
        gdr_only_received=bool(tally.without_gdr)
        and 0 < counts["received"] == counts["received by gdr"],
        # All values if ranks differ.
        environment={
            kind.removeprefix("env "): " | ".join(list(stated[kind])[:4]) for kind in environment
        },
        first=dict(tally.first),
    )


def _nvlink(tally: Tally) -> bool:
    """Whether a line says so, or a chunk size that was not requested shows it."""
    asked = {"env NCCL_P2P_NVL_CHUNKSIZE", "env NCCL_P2P_PCI_CHUNKSIZE"}
    if tally.largest.get("nodes") != 1:
        asked.add("env NCCL_P2P_NET_CHUNKSIZE")
    by_size = "nvlink by size" in tally.facts and asked.isdisjoint(tally.facts)
    return "nvlink" in tally.facts or by_size or bool(tally.channels["P2P/MNNVL"])


def hosts_of(tally: Tally) -> tuple[str, ...]:
    """Return the names of the hosts, without fragments of interleaved lines."""
    named = Counter({host: lines for host, lines in tally.hosts.items() if host})
    least = next((n for n in (_LEAST, 2, 1) if any(v >= n for v in named.values())), 1)
    return tuple(sorted(host for host, lines in named.items() if lines >= least))


def nodes_of(tally: Tally, between: Counter[str]) -> int | None:
    """Return the number of nodes: as NCCL prints it, else by host names."""
    if "nodes" in tally.largest:
        return int(tally.largest["nodes"])
    seen = len(hosts_of(tally))
    if seen > 1:
        return seen
    # The logs may contain the lines of one node only.
    return 1 if seen == 1 and not between and tally.channels else None


def between_nodes(tally: Tally) -> Counter[str]:
    """Count the channels between nodes by kind; if the hosts are unknown, those over a network.

    Ranks are those of a communicator, of which a job has many; so a channel stays inside a node
    only if both its ends were printed there.
    """
    stated = int(tally.largest.get("nodes", 0))
    found: Counter[str] = Counter()
    if stated == 1:
        return found
    found.update(tally.elsewhere)
    trusted = stated <= len(hosts_of(tally))
    senders: dict[tuple[int, int], set[str]] = defaultdict(set)
    receivers: dict[tuple[int, int], set[str]] = defaultdict(set)
    for ends in tally.ends:
        (senders if ends.sends else receivers)[ends.sender, ends.receiver].add(ends.host)
    for ends, channels in tally.ends.items():
        pair = ends.sender, ends.receiver
        inside = len(senders[pair]) == 1 and senders[pair] == receivers[pair] != {""}
        if not (trusted and inside):
            found[ends.kind] += channels
    if stated > 1 and tally.channels["P2P/MNNVL"]:
        found["P2P/MNNVL"] = tally.channels["P2P/MNNVL"]
    return found


def transport_of(
    paths: Sequence[Path], promised: Network | None = None, *, root: Path | None = None
) -> Transport | None:
    """Return the transport that NCCL used in a run; None without a line of NCCL.

    A folder selects the logs in it. `promised` is the network of the profile; paths in evidence are
    relative to `root`. A file that cannot be read is skipped; it is reported with the records.
    """
    together = Tally()
    for path in log_files(list(paths)):
        inside = root is not None and path.is_relative_to(root)
        source = path.relative_to(root).as_posix() if root and inside else path.as_posix()
        reader = TransportReader(source)
        with suppress(LogParseError), open_log(path) as stream:
            for _ in dispatch(stream, (), whole=(reader,)):
                pass
            together.add(reader.tally)
    return transport_in(together, promised)


def transport_in(tally: Tally, promised: Network | None = None) -> Transport | None:
    """Return the transport of a tally; None without a line of NCCL."""
    seen = facts(tally)
    return verdict(seen, promised) if seen else None


NetworkOf = Callable[[str], Network | None]


def site_network(site: str) -> Network | None:
    """Return a site's network; None if its profile was removed, or states no network."""
    # Foreign logs need no profiles.
    from hpc_train.sites.load import load_site

    try:
        return load_site(site).value.network
    except HpcTrainError:
        return None


def run_transport(run: Run, network_of: NetworkOf = site_network) -> Transport | None:
    """Return the transport from a run's logs or, if they are deleted, from transport.json.

    Return None if NCCL was not used. The transport of a finished run is stored in transport.json;
    its findings are always derived again.

    Raises:
        LogParseError: transport.json is needed and damaged.
    """
    folder = run.folder
    network = run_network(run, network_of)
    if not is_folder(folder.logs):
        stored = read_cache(folder.transport, msgspec.json.Decoder(Transport).decode)
        return verdict(stored, network) if stored else None
    found = transport_of([folder.logs], network, root=folder.path)
    if found and run.state.finished:
        write_cache(folder.transport, to_json(found))
    return found


def run_network(run: Run, network_of: NetworkOf = site_network) -> Network | None:
    """Return the network of the site of a run."""
    return network_of(run.manifest.plan.site) if run.manifest else None


def transport_warnings(found: Transport | None) -> Iterator[str]:
    """Yield a line for each finding on the transport: place and remedy."""
    for finding in found.findings if found else ():
        if finding.severity != "info":
            where = f" ({finding.evidence[0]})" if finding.evidence else ""
            yield f"transport: {finding.message}{where}; {finding.advice}"


def transport_notes(found: Mapping[str, Transport | None]) -> tuple[str, ...]:
    """Return the warnings of several runs; a common warning is given once, for the first run."""
    runs: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for run_id, transport in found.items():
        ids = [f.id for f in transport.findings if f.severity != "info"] if transport else []
        for finding, text in zip(ids, transport_warnings(transport), strict=True):
            runs.setdefault(finding, []).append(run_id)
            texts.setdefault(finding, text)
    return tuple(f"{_named(runs[finding])}: {text}" for finding, text in texts.items())


def _named(runs: list[str]) -> str:
    return runs[0] if len(runs) == 1 else f"{runs[0]} and {len(runs) - 1} more"
