"""Records of perftest, and the speed of the links -> a warning for each slow link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from hpc_train.errors import HpcTrainError
from hpc_train.model.queue_limits import partition_named
from hpc_train.model.record import Record
from hpc_train.model.run import Run
from hpc_train.model.transport import Transport
from hpc_train.sites.load import load_site
from hpc_train.tables.largest_message_bandwidth import headline, share_of_link

# Minimum fraction of its rate that an intact link carries in long messages.
_HEALTHY, _LONG = 0.85, 1 << 16
LinkRate = Callable[[str], float | None]


def link_rate(run: Run | None, transport: Transport | None) -> float | None:
    """Return the speed of an adapter [Gbit/s]: from the site's profile, else from NCCL's log."""
    stated = [
        speed for adapter in (transport.adapters if transport else ()) for speed in adapter.gbps
    ]
    return (_profile_rate(run) if run else None) or max(stated, default=None)


def link_warnings(records: Iterable[Record], rate: LinkRate) -> tuple[str, ...]:
    """Return a warning for each run with slow links."""
    runs: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.parser == "perftest" and (record.message_size or 0) >= _LONG:
            runs[record.run].append(record)
    return tuple(text for run, found in runs.items() for text in _slow(run, found, rate))


def _slow(run: str, records: list[Record], rate: LinkRate) -> Iterable[str]:
    best, link = headline(records), rate(run)
    share = share_of_link(best.value, link) if best and link else 1.0
    if best and share < _HEALTHY:
        yield (
            f"{run}: perftest moves {best.value * 8:.3g} Gbit/s, {100 * share:.0f} % of the link's "
            f"{link:g}; a healthy link reaches {100 * _HEALTHY:.0f} %: check its speed (`ibstat`), "
            "the PCIe width and speed of the adapter (`lspci -vv`), the MTU and the NUMA node"
        )


def _profile_rate(run: Run) -> float | None:
    if run.manifest is None:
        return None
    try:
        site = load_site(run.manifest.plan.site)
    except HpcTrainError:
        return None
    found = partition_named(site.value, run.manifest.spec.partition)
    return found[1].nic_gbps if found else None
