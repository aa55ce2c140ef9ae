"""The smoke job of a site, two nodes for one minute: its job file, and its result."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hpc_train.base.errors import SiteProfileError
from hpc_train.base.files import files_in, read_regular
from hpc_train.base.values import Value
from hpc_train.nccl.transport import transport_of
from hpc_train.runs.run import RunFolder
from hpc_train.sites.profile import SiteProfile

MODULE = "hpc_train.trainer.smoke"
NODES = 2
_EVENT = re.compile(r"^@hpct (?P<event>\{.*\})\s*$", re.MULTILINE)


class Smoke(Value, frozen=True, kw_only=True):
    """Result of the smoke job; `busbw_gbs` [GB/s] is that of a large all-reduce."""

    ranks: int
    hosts: tuple[str, ...]
    launcher: str
    backend: str
    interface: str
    transport: str
    busbw_gbs: float | None
    warnings: tuple[str, ...]


def write_smoke_job(folder: Path) -> Path:
    """Write the job file of the smoke job; command-line options set the other keys."""
    file = folder / "smoke.yaml"
    text = (
        f"name: smoke\ncommand: [python, -m, {MODULE}]\n"
        f"resources: {{nodes: {NODES}, time: 5m}}\n"
        "env: {NCCL_DEBUG: INFO, NCCL_DEBUG_SUBSYS: 'INIT,NET'}\n"
    )
    file.write_text(text, encoding="utf-8")
    return file


def read_smoke(folder: RunFolder, profile: SiteProfile) -> Smoke:
    """Read the output of rank 0 of a finished smoke job.

    Raises:
        SiteProfileError: it contains no result.
    """
    text = "".join(
        read_regular(path).decode(errors="replace") for path in files_in(folder.logs, "*.out")
    )
    event = next(_events(text), None)
    if event is None:
        raise SiteProfileError(
            f"{folder.logs}: the smoke job printed no result",
            f"hpctrain logs {folder.run_id}",
        )
    transport = transport_of(folder.logs, folder.path)
    networks = transport.using_network if transport else {}
    speed, backend = event.get("busbw"), str(event["backend"])
    interface = str(event.get("interface") or "")
    over = max(networks, key=networks.__getitem__, default="")
    network, warnings = profile.network, []
    named = network.interfaces if network else ()
    if backend == "gloo" and named and interface and interface not in named:
        warnings.append(f"the interface was {interface}, the profile names {', '.join(named)}")
    if over == "Socket" and network and network.fabric not in (None, "ethernet"):
        warnings.append(f"NCCL uses TCP sockets, the profile names {network.fabric}")
    return Smoke(
        ranks=int(event["ranks"]),
        hosts=tuple(dict.fromkeys(map(str, event["hosts"]))),
        launcher=str(event["launcher"]),
        backend=backend,
        interface=interface,
        transport=over,
        busbw_gbs=round(float(speed), 3) if speed else None,
        warnings=tuple(warnings),
    )


def _events(text: str) -> Iterator[Mapping[str, Any]]:
    for match in _EVENT.finditer(text):
        try:
            event = json.loads(match["event"])
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "smoke":
            yield event
