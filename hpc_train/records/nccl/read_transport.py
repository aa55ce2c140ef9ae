"""Logs of a run -> the counts of NCCL's lines -> Transport."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hpc_train.errors import LogParseError
from hpc_train.model.site_network import Network
from hpc_train.model.transport import Adapter, Transport
from hpc_train.records.find_logs import log_files
from hpc_train.records.line_dispatch import dispatch
from hpc_train.records.log_file import open_log
from hpc_train.records.nccl.read_nccl_lines import TransportReader
from hpc_train.records.nccl.tally import Tally
from hpc_train.records.nccl.transport_verdict import verdict

# A name with fewer lines may be a fragment of two interleaved lines.
_LEAST = 5
_MOST = 64


def facts(tally: Tally) -> Transport | None:
    """Return the transport that the lines show; None without a line of NCCL."""
    if not tally.first:
        return None
    between = between_nodes(tally)
    counts = tally.counts
    return Transport(
        nccl_version=_versions(tally),
        ranks=_whole(tally, "ranks"),
        nodes=nodes_of(tally, between),
        hosts=hosts_of(tally),
        using_network=dict(tally.facts.get("network", {})),
        channels=_ordered(tally.channels, collnet=False),
        between_nodes=_ordered(between, collnet=False),
        collnet=_ordered(tally.channels, collnet=True),
        pxn_channels=counts["pxn"],
        connected_all_rings=counts["rings"],
        connected_all_trees=counts["trees"],
        connected_nvls=counts["nvls trees"],
        nvls_available="available" in tally.facts["nvls"] if "nvls" in tally.facts else None,
        nvlink=_nvlink(tally),
        rccl="rccl" in tally.facts,
        init_complete=counts["init"],
        init_s=tally.largest.get("init_s"),
        warn_count=counts["warnings"],
        adapters=_adapters(tally),
        interfaces=_values(tally, "interface"),
        plugins=_values(tally, "plugin"),
        plugin_missing="plugin missing" in tally.facts and "plugin" not in tally.facts,
        ofi_version=_usual(tally, "ofi"),
        provider=_usual(tally, "provider"),
        protocol=_usual(tally, "protocol"),
        without_gdr=tuple(sorted(tally.without_gdr)[:_MOST]),
        gdr_only_received=bool(tally.without_gdr)
        and 0 < counts["received"] == counts["received by gdr"],
        environment=_environment(tally),
        first=dict(tally.first),
    )


def _values(tally: Tally, kind: str) -> tuple[str, ...]:
    return tuple(tally.facts.get(kind, ()))[:_MOST]


def _usual(tally: Tally, kind: str) -> str:
    values = tally.facts.get(kind)
    return values.most_common(1)[0][0] if values else ""


def _whole(tally: Tally, kind: str) -> int | None:
    return int(tally.largest[kind]) if kind in tally.largest else None


def _versions(tally: Tally) -> tuple[str, ...]:
    """Return the versions without those that are a prefix of another."""
    values = _values(tally, "version")
    return tuple(one for one in values if not any(o != one and o.startswith(one) for o in values))


def _ordered(counts: Counter[str], *, collnet: bool) -> dict[str, int]:
    return {
        kind: number
        for kind, number in counts.most_common()
        if kind.startswith("COLLNET/") == collnet
    }


def _nvlink(tally: Tally) -> bool:
    known = "nvlink" in tally.facts or bool(tally.counts["nvls trees"])
    return known or _by_size(tally) or bool(tally.channels["P2P/MNNVL"])


def _by_size(tally: Tally) -> bool:
    """Return whether a chunk size that was not requested shows NVLink."""
    asked = {"env NCCL_P2P_NVL_CHUNKSIZE", "env NCCL_P2P_PCI_CHUNKSIZE"}
    if tally.largest.get("nodes") != 1:
        asked.add("env NCCL_P2P_NET_CHUNKSIZE")
    return "nvlink by size" in tally.facts and asked.isdisjoint(tally.facts)


def _adapters(tally: Tally) -> tuple[Adapter, ...]:
    return tuple(_adapter(text, tally) for text in _values(tally, "adapter"))


def _adapter(text: str, tally: Tally) -> Adapter:
    name, layer, *sharp = text.split("/")
    device = name.partition(":")[0]
    return Adapter(
        name=name,
        link_layer=layer,
        sharp=bool(sharp),
        gdr_enabled=tally.facts.get("gdr enabled", Counter[str]())[device],
        gdr_disabled=tally.facts.get("gdr disabled", Counter[str]())[device],
        gbps=_speeds(tally, name),
    )


def _speeds(tally: Tally, adapter: str) -> tuple[float, ...]:
    stated = (text.rpartition(" ") for text in tally.facts.get("speed", ()))
    return tuple(sorted({int(speed) / 1000 for name, _, speed in stated if name == adapter}))


def _environment(tally: Tally) -> dict[str, str]:
    """Return the environment variables that were set; all values if ranks differ."""
    named = [kind for kind in tally.facts if kind.startswith("env ")][:_MOST]
    return {
        kind.removeprefix("env "): " | ".join(list(tally.facts[kind])[:4]) for kind in sorted(named)
    }


def hosts_of(tally: Tally) -> tuple[str, ...]:
    """Return the names of the hosts, without fragments of interleaved lines."""
    named = Counter({host: lines for host, lines in tally.hosts.items() if host})
    least = next((n for n in (_LEAST, 2, 1) if any(v >= n for v in named.values())), 1)
    return tuple(sorted(host for host, lines in named.items() if lines >= least))


def nodes_of(tally: Tally, between: Counter[str]) -> int | None:
    """Return the number of nodes: as NCCL prints it, else by host names."""
    if "nodes" in tally.largest:
        return int(tally.largest["nodes"])
    seen = max(len(hosts_of(tally)), _ranks_on_one_gpu(tally))
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
    trusted = max(stated, _ranks_on_one_gpu(tally)) <= len(hosts_of(tally))
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


def _ranks_on_one_gpu(tally: Tally) -> int:
    """Return how many ranks of the largest communicator have the same host name and GPU bus.

    A number above one is the number of nodes with the same host name.
    """
    largest = int(tally.largest.get("ranks", 0))
    seats = {seat: n for seat, n in tally.seats.items() if seat.ranks == largest and seat.bus}
    # Several communicators of that size number the same GPUs differently.
    if {seat.rank for seat in seats} != set(range(largest)) or sum(seats.values()) != largest:
        return 0
    return max(Counter((seat.host, seat.bus) for seat in seats).values(), default=0)


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
        with suppress(LogParseError):
            together.add(_tally(path, source))
    return transport_in(together, promised)


def transport_in(tally: Tally, promised: Network | None = None) -> Transport | None:
    """Return the transport of a tally; None without a line of NCCL."""
    seen = facts(tally)
    return verdict(seen, promised) if seen else None


def _tally(path: Path, source: str) -> Tally:
    reader = TransportReader(source)
    with open_log(path) as stream:
        for _ in dispatch(stream, (), whole=(reader,)):
            pass
    return reader.tally
