"""A run -> the transport of NCCL, compared with its site's profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.files import is_folder
from hpc_train.nccl.transport import transport_of, verdict
from hpc_train.runs.json_files import to_json
from hpc_train.runs.log_result_cache import read_cache, write_cache
from hpc_train.runs.nccl_transport import Transport
from hpc_train.runs.run import Run
from hpc_train.sites.partition import Network

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
        for finding, text in _warned(transport):
            runs.setdefault(finding, []).append(run_id)
            texts.setdefault(finding, text)
    return tuple(f"{_named(runs[finding])}: {text}" for finding, text in texts.items())


def _warned(found: Transport | None) -> Iterator[tuple[str, str]]:
    ids = [f.id for f in found.findings if f.severity != "info"] if found else []
    yield from zip(ids, transport_warnings(found), strict=True)


def _named(runs: list[str]) -> str:
    return runs[0] if len(runs) == 1 else f"{runs[0]} and {len(runs) - 1} more"
