"""Logs of a run -> the counts of NCCL's lines -> Transport with verdict and findings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from hpc_train.base.decode import load_data
from hpc_train.base.errors import HpcTrainError, LogParseError
from hpc_train.base.files import is_folder
from hpc_train.base.values import Severity, Value
from hpc_train.logs.line import Block, Line, dispatch
from hpc_train.logs.log_file import log_files, open_log
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


def transport_of(logs: Path, root: Path, promised: Network | None = None) -> Transport | None:
    """Return the transport that NCCL used in a log, or the logs of a folder; None if in none.

    `promised` is the network of the profile; paths in evidence are relative to `root`. A file that
    cannot be read is skipped; it is reported with the records.
    """
    together = Tally()
    for path in log_files([logs]):
        reader = TransportReader(path.relative_to(root).as_posix())
        with suppress(LogParseError), open_log(path) as stream:
            for _ in dispatch(stream, (), whole=(reader,)):
                pass
            together.add(reader.tally)
    return transport_in(together, promised)


def transport_in(tally: Tally, promised: Network | None = None) -> Transport | None:
    """Return the transport of a tally; None without a line of NCCL."""
    seen = facts(tally)
    return verdict(seen, promised) if seen else None


def site_network(site: str) -> Network | None:
    """Return a site's network; None if its profile was removed, or states no network."""
    # Foreign logs need no profiles.
    from hpc_train.sites.load import load_site

    try:
        return load_site(site).value.network
    except HpcTrainError:
        return None


def run_transport(run: Run, network: Network | None) -> Transport | None:
    """Return the transport from a run's logs or, if they are deleted, from transport.json.

    Return None if NCCL was not used. The transport of a finished run is stored in transport.json;
    its findings are always derived again.

    Raises:
        LogParseError: transport.json is needed and damaged.
    """
    folder = run.folder
    if not is_folder(folder.logs):
        stored = read_cache(folder.transport, msgspec.json.Decoder(Transport).decode)
        return verdict(stored, network) if stored else None
    found = transport_of(folder.logs, folder.path, network)
    if found and run.state.finished:
        write_cache(folder.transport, to_json(found))
    return found


def run_network(run: Run) -> Network | None:
    """Return the network of the site of a run."""
    return site_network(run.manifest.plan.site) if run.manifest else None


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


class Ends(NamedTuple):
    """Both ranks of a network channel, and the host and the rank that printed the line."""

    kind: str
    sender: int
    receiver: int
    sends: bool
    host: str


class Tally:
    """Counts of facts; `facts` is keyed by kind (`network`, `plugin`, `env NCCL_ALGO`) and value.

    `counts` are those of the channels that receive, `largest` is the largest number of a kind.
    `first` is the position of the first line of each kind.
    """

    def __init__(self) -> None:
        self.channels: Counter[str] = Counter()
        self.ends: Counter[Ends] = Counter()
        self.elsewhere: Counter[str] = Counter()
        self.without_gdr: Counter[str] = Counter()
        self.hosts: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.facts: dict[str, Counter[str]] = {}
        self.largest: dict[str, float] = {}
        self.first: dict[str, str] = {}

    def note(self, kind: str, value: str, lines: int) -> None:
        """Count a fact."""
        self.facts.setdefault(kind, Counter())[value] += lines

    def raise_to(self, kind: str, value: float) -> None:
        """Keep the largest number of a kind."""
        self.largest[kind] = max(value, self.largest.get(kind, value))

    def add(self, other: Tally) -> None:
        """Add the counts of another log; the positions in this one come first."""
        for name in ("channels", "elsewhere", "without_gdr", "hosts", "counts", "ends"):
            getattr(self, name).update(getattr(other, name))
        for kind, values in other.facts.items():
            self.facts.setdefault(kind, Counter()).update(values)
        for kind, value in other.largest.items():
            self.raise_to(kind, value)
        self.first = {**other.first, **self.first}


# Blocks of one log -> lines of NCCL -> Tally; channels, possibly millions, are parsed as bytes.


class Message(Value, frozen=True, kw_only=True, dict=True):
    """A kind of line, as it is written in the file."""

    kind: str
    words: str
    pattern: str
    value: str = ""
    each: str = ""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern."""
        return re.compile(self.pattern)

    def count(self, tally: Tally, match: re.Match[str], lines: int) -> None:
        """Count what a match states, and that of equal lines of its host."""
        named = match.groupdict("")
        for kind in _LARGEST & named.keys():
            tally.raise_to(kind, float(named[kind]))
        if self.kind in _LARGEST:
            return
        kind = f"env {named['name']}" if self.kind == "env" else self.kind
        values = [self.value.format(**named) if self.value else match[1]]
        if self.each:
            # The interface of the bootstrap follows the adapters.
            values = re.findall(self.each, named["list"].partition("OOB ")[0])
        for value in values:
            tally.note(kind, value.strip().replace("/ROCE", "/RoCE"), lines)


class Messages(Value, frozen=True, kw_only=True):
    """The content of the file: literals of the lines, and messages."""

    schema: Literal[1]
    literals: tuple[str, ...]
    messages: tuple[Message, ...]


@cache
def nccl_lines() -> Messages:
    """Return the kinds of lines that come with the package."""
    return load_data("nccl_lines.yaml", Messages)


_LARGEST = frozenset({"ranks", "nodes"})
_CHANNELS = (b" via NET/", b" via P2P/", b" via SHM/", b" via direct shared memory")
_VIA = b" via "
_OURS = b"CCL"
# Anonymised names may be in angle brackets; some logs have no thread number.
_WHO = re.compile(rb"(?<![\w.-])([\w.-]{1,64})>?(?::\d{1,9}){1,2} \[-?\d{1,4}\] ")
_WHO_TEXT = re.compile(_WHO.pattern.decode())
_CHANNEL = re.compile(rb" Channel \d{1,5}(?:/\d{1,5})? : ")
# `.. 3[1b000] -> 4[3d000] [send] via NET/IB/2(5)/GDRDMA/Shared` -> kind, ends, GPUDirect.
#
# All versions: `Ring` and `Channel`, with and without a connection's number, a device in brackets
# (bus or number), a proxy rank (PXN) in parentheses, and the text that RCCL adds at the end.

_CHANNEL_VIA = re.compile(
    rb"via (?:"
    rb"NET/(?P<net>[^/:\r\n]{1,48})/(?P<nic>\d{1,6})(?:\(\d{1,7}\))?(?P<gdr>/GDRDMA)?"
    rb"|P2P/(?P<p2p>direct pointer|IPC|CUMEM|MNNVL|indirect|[A-Za-z]{2,16}(?=[/\s]|\Z))"
    rb"|(?P<shm>SHM/|direct shared memory)"
    rb")"
)
_ENDS = re.compile(
    rb"(?P<sender>\d{1,7})(?:\[[0-9A-Fa-f]{1,16}\])? -> "
    rb"(?P<receiver>\d{1,7})(?:\[[0-9A-Fa-f]{1,16}\])?(?: \[(?P<role>send|receive)\])? $"
)
_HEAD = 96
_MOST_LINES = 30_000
# Size of the lines kept in memory [B].
_HELD = 1 << 24


class TransportReader:
    """Reads one log, block by block, for `dispatch`; `source` names the log in evidence.

    Equal lines of all ranks are counted and parsed once; so are lines that differ only in the
    number of the channel.
    """

    def __init__(self, source: str) -> None:
        known = nccl_lines()
        self.literals = (*_CHANNELS, *(one.encode() for one in known.literals))
        self._messages = known.messages
        self._tally = Tally()
        self._source = source
        self._alike: dict[bytes, list[int]] = {}
        self._held = 0

    @property
    def tally(self) -> Tally:
        """The counts of the lines so far."""
        for raw, (number, times) in self._alike.items():
            if any(literal in raw for literal in self.literals):
                for part in raw.split(b"\r"):
                    self._read(part, number, times)
        self._alike.clear()
        self._held = 0
        return self._tally

    def read_block(self, block: Block, number: int) -> None:
        """Count the lines of a block; interleaved lines count as several."""
        text, alike, at = bytes(memoryview(block.data)[: block.end]), self._alike, 0
        if _VIA in text:
            text = _CHANNEL.sub(b" Channel : ", text)
        lines = text.split(b"\n")
        # In the order in which they are first seen.
        for raw, times in Counter(lines).items():
            known = alike.get(raw)
            if known is not None:
                known[1] += times
            elif _OURS in raw or _VIA in raw:
                at = lines.index(raw, at)
                alike[raw] = [number + at, times]
                self._held += len(raw)
                if len(alike) >= _MOST_LINES or self._held >= _HELD:
                    _ = self.tally

    def _read(self, raw: bytes, number: int, lines: int) -> None:
        if _VIA in raw:
            self._channels(raw, number, lines)
            # Unless another rank has written into it, the line of a channel contains no other text.
            if raw.count(b"NCCL ") == raw.count(_VIA) == 1:
                return
        self._statements(Line(raw, number), lines)

    def _channels(self, raw: bytes, number: int, lines: int) -> None:
        who = _WHO.search(raw)
        if who is None and b"NCCL INFO" not in raw and b" -> " not in raw:
            return
        host = who[1].decode("ascii", "replace") if who else ""
        self._tally.hosts[host] += lines
        # Interleaved lines have several.
        for match in _CHANNEL_VIA.finditer(raw):
            kind = self._channel(match, host, lines)
            self._tally.channels[kind] += lines
            self._first(kind, number)

    def _channel(self, match: re.Match[bytes], host: str, lines: int) -> str:
        """Return the kind of a channel; count the ends and the adapter of one over a network."""
        tally, via = self._tally, match.start()
        if match["p2p"]:
            return "P2P/" + match["p2p"].decode()
        if match["shm"]:
            return "SHM"
        text, gdr = match["net"].decode("utf-8", "replace"), bool(match["gdr"])
        network = f"NET/{text if text.isprintable() else '?'}"
        kind = f"{network}{'/GDRDMA' if gdr else ''}"
        if not gdr:
            tally.without_gdr[f"{host or '?'}:{network}/{match['nic'].decode()}"] += lines
        colon = match.string.rfind(b" : ", max(0, via - _HEAD), via)
        ends = _ENDS.match(match.string, colon + 3, via) if colon >= 0 else None
        if ends is None or ends["role"] is None:
            tally.elsewhere[kind] += lines
            return kind
        sends = ends["role"] == b"send"
        tally.ends[Ends(kind, int(ends["sender"]), int(ends["receiver"]), sends, host)] += lines
        if not sends:
            tally.counts["received"] += lines
            tally.counts["received by gdr"] += lines * gdr
        return kind

    def _statements(self, line: Line, lines: int) -> None:
        for host, text in _pieces(line.text):
            if host:
                self._tally.hosts[host] += lines
            for message in self._messages:
                match = message.compiled.search(text) if message.words in text else None
                if match is not None:
                    message.count(self._tally, match, lines)
                    self._first(message.kind, line.number)

    def _first(self, kind: str, number: int) -> None:
        if kind not in self._tally.first:
            self._tally.first[kind] = f"{self._source}:{number}"


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Split a line at the text of other ranks; yield the host and the message of each part."""
    starts = list(_WHO_TEXT.finditer(text))
    if not starts or starts[0].start() > 0:
        yield "", text[: starts[0].start()] if starts else text
    ends = [start.start() for start in starts[1:]]
    for start, end in zip(starts, [*ends, len(text)][: len(starts)], strict=True):
        yield start[1], text[start.end() : end]
