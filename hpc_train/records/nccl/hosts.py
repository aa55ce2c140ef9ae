"""Tally -> which hosts and nodes there are, and which channels run between nodes."""

from __future__ import annotations

from collections import Counter, defaultdict

from hpc_train.records.nccl.counts import Tally

# A name that fewer lines begin with may be two lines in one.
_LEAST = 5


def hosts_of(tally: Tally) -> tuple[str, ...]:
    """Return the hosts' names, without what broken lines make look like one."""
    named = Counter({host: lines for host, lines in tally.hosts.items() if host})
    least = next((n for n in (_LEAST, 2, 1) if any(v >= n for v in named.values())), 1)
    return tuple(sorted(host for host, lines in named.items() if lines >= least))


def nodes_of(tally: Tally, between: Counter[str]) -> int | None:
    """Return the number of nodes: as NCCL counts them, else the names that containers have."""
    if "nodes" in tally.largest:
        return int(tally.largest["nodes"])
    seen = max(len(hosts_of(tally)), _ranks_on_one_gpu(tally))
    if seen > 1:
        return seen
    # Only one node's lines may be there.
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
    """Return how many ranks of the largest communicator sit on GPUs of one name and bus.

    More than one: so many nodes call themselves the same.
    """
    largest = int(tally.largest.get("ranks", 0))
    seats = {seat: n for seat, n in tally.seats.items() if seat.ranks == largest and seat.bus}
    # Several communicators of that size number the same GPUs differently.
    if {seat.rank for seat in seats} != set(range(largest)) or sum(seats.values()) != largest:
        return 0
    return max(Counter((seat.host, seat.bus) for seat in seats).values(), default=0)
