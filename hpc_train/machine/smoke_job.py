"""The smoke job of a site, two nodes for one minute: job file, result, storage of the result."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.base.data_folders import user_folder
from hpc_train.base.errors import HpcTrainError, SiteProfileError
from hpc_train.base.files import files_in, read_regular
from hpc_train.base.values import Value
from hpc_train.nccl.transport import transport_of
from hpc_train.runs.json_files import cannot_write, write_file
from hpc_train.runs.run import RunFolder
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import Expected, SiteProfile
from hpc_train.sites.search import layer_of

MODULE = "hpc_train.trainer.smoke"
NODES = 2
# A result below this fraction of the stored one is reported.
SLOWER = 0.8
_EVENT = re.compile(r"^@hpct (?P<event>\{.*\})\s*$", re.MULTILINE)


class Smoke(Value, frozen=True, kw_only=True):
    """Result of the smoke job, and its differences from the stored one."""

    expected: Expected
    ranks: int
    hosts: tuple[str, ...]
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


def read_smoke(folder: RunFolder, profile: SiteProfile, date: str) -> Smoke:
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
    speed = event.get("busbw")
    expected = Expected(
        date=date,
        nodes=int(event["nodes"]),
        launcher=str(event["launcher"]),
        backend=str(event["backend"]),
        interface=str(event.get("interface") or "") or None,
        transport=max(networks, key=networks.__getitem__, default=None),
        busbw_gbs=round(float(speed), 3) if speed else None,
    )
    hosts = tuple(dict.fromkeys(map(str, event["hosts"])))
    return Smoke(
        expected=expected,
        ranks=int(event["ranks"]),
        hosts=hosts,
        warnings=tuple(_warnings(expected, profile)),
    )


def same_kind(one: Expected, other: Expected) -> bool:
    """Whether two results can be compared: equal numbers of nodes, the same launcher."""
    return (one.nodes, one.launcher) == (other.nodes, other.launcher)


def _warnings(result: Expected, profile: SiteProfile) -> Iterator[str]:
    network = profile.network
    named = network.interfaces if network else ()
    if result.backend == "gloo" and named and result.interface and result.interface not in named:
        yield f"the interface was {result.interface}, the profile names {', '.join(named)}"
    if result.transport == "Socket" and network and network.fabric not in (None, "ethernet"):
        yield f"NCCL uses TCP sockets, the profile names {network.fabric}"
    stored = profile.tests.expect if profile.tests else ()
    for old in (one for one in stored if same_kind(one, result)):
        for key in ("backend", "interface", "transport"):
            now, then = getattr(result, key), getattr(old, key)
            if now != then:
                yield f"{key} is {now or 'none'}; on {old.date} it was {then or 'none'}"
        if result.busbw_gbs and old.busbw_gbs and result.busbw_gbs < SLOWER * old.busbw_gbs:
            yield f"bus bandwidth is {result.busbw_gbs} GB/s, on {old.date} it was {old.busbw_gbs}"


def _events(text: str) -> Iterator[Mapping[str, Any]]:
    for match in _EVENT.finditer(text):
        try:
            event = json.loads(match["event"])
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "smoke":
            yield event


# The block written by hpctrain, up to the next key of the file.
_BLOCK = re.compile(r"^tests:.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def save_result(site: SiteProfile, file: Path, result: Expected) -> Path:
    """Write a result into the user's profile, or into a new one that extends the shipped one.

    Raises:
        SiteProfileError: the file cannot be written, or would no longer load.
    """
    stored = site.tests.expect if site.tests else ()
    results = [*(one for one in stored if not same_kind(one, result)), result]
    target = file
    if layer_of(file) in ("shipped", "system"):
        target = user_folder() / f"{site.name}.yaml"
    text = f"schema: 1\nname: {site.name}\nextends: {site.name}\n"
    if target.is_file():
        text = target.read_text(encoding="utf-8")
    lines = [_BLOCK.sub("", text).rstrip("\n"), "tests:", "  expect:"]
    for one in results:
        facts = {key: value for key, value in msgspec.structs.asdict(one).items() if value}
        lines.append(f"    - {msgspec.json.encode(facts).decode()}")
    _replace(target, "\n".join(lines) + "\n")
    return target


def _replace(target: Path, text: str) -> None:
    """Load the new text before it replaces the old one; the old one stays if this fails."""
    trial = target.parent / ".hpctrain-trial" / target.name
    try:
        trial.parent.mkdir(parents=True, exist_ok=True)
        trial.write_text(text, encoding="utf-8")
    except OSError as failure:
        raise cannot_write(target, failure) from None
    try:
        load_site(trial)
        write_file(target, text.encode())
    except HpcTrainError as failure:
        raise SiteProfileError(f"{target}: not written: {failure.message}", failure.hint) from None
    finally:
        trial.unlink(missing_ok=True)
        trial.parent.rmdir()
