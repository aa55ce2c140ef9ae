"""Facts about machines that ssh reaches -> the draft of a profile that loads and renders a job."""

from __future__ import annotations

import datetime
import ipaddress
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from hpc_train.base.errors import ProbeError, SpecError
from hpc_train.base.files import write_atomic
from hpc_train.base.value import Value
from hpc_train.hosts.transport import Answer, at_once, call
from hpc_train.machine.draft_profile import GUESSED, heading, line, question, remark
from hpc_train.machine.init_site import Drafted, InitOptions, check_draft, target_of, write_draft
from hpc_train.runs.json_files import cannot_write
from hpc_train.sites.partition import Arch

Address = ipaddress.IPv4Interface


class HostFacts(Value, frozen=True, kw_only=True):
    """What a host says of itself; `memory` in MiB, addresses with the length of their prefix."""

    name: str
    hostname: str
    cpus: int
    memory: int
    arch: str
    gpus: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    shared: bool = False


def read_facts(name: str, lines: Sequence[tuple[str, str]], *, shared: bool) -> HostFacts:
    """Return the facts in the answer of a host."""
    one = dict(lines)
    return HostFacts(
        name=name,
        hostname=one.get("hostname", ""),
        cpus=int(one.get("cpus", "1")),
        memory=int(one.get("memory", "0")),
        arch=one.get("arch", ""),
        gpus=tuple(text for word, text in lines if word == "gpu"),
        addresses=tuple(text.split(" ")[0] for word, text in lines if word == "address"),
        shared=shared,
    )


def draft_hosts(name: str, date: str, hosts: Sequence[HostFacts]) -> str:
    """Return the text of the profile; unknown values are questions.

    Raises:
        ProbeError: the hosts have different numbers of GPUs.
    """
    _check_gpus(hosts)
    parts = (_head(name, date, hosts), _hosts(hosts), _launchers(), _partition(hosts))
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _check_gpus(hosts: Sequence[HostFacts]) -> None:
    first = hosts[0]
    for host in hosts[1:]:
        if len(host.gpus) != len(first.gpus):
            raise ProbeError(
                f"{host.name} has {len(host.gpus)} GPUs and {first.name} has {len(first.gpus)}: a "
                "job has the same number on each host",
                "write one profile for each kind: hpctrain site init NAME --hosts HOST,…",
            )


def _head(name: str, date: str, hosts: Sequence[HostFacts]) -> Iterator[str]:
    machines = f"Machines by ssh: {', '.join(host.name for host in hosts)}"
    source = "answers of the hosts by ssh"
    yield from heading(name, date, machines, "which machines, where?", source)
    yield line("scheduler", "hosts")
    arches = {host.arch for host in hosts}
    if len(arches) == 1 and arches <= set(get_args(Arch)):
        yield line("arch", arches.pop())


def _hosts(hosts: Sequence[HostFacts]) -> Iterator[str]:
    addresses = common_addresses(hosts)
    yield "hosts:"
    for host in hosts:
        address = addresses.get(host.name)
        stated = f", address: {address}" if address else ""
        note = "" if address else f"  # {GUESSED}: the ranks use its name; has it an address?"
        yield f"  - {{name: {host.name}{stated}, gpus: {len(host.gpus)}}}{note}"
    if addresses and any(len(host.addresses) > 1 for host in hosts):
        yield remark("addresses, of which the ranks should use those of the fastest network:")
        for host in hosts:
            yield remark(f"  {host.name}: {', '.join(host.addresses)}")
    together = all(host.shared for host in hosts)
    yield line("shared", together, "all of them see a file of this folder" if together else "")
    yield question("workdir", "~/hpctrain", "folder for copies and runs on each host?")


def common_addresses(hosts: Sequence[HostFacts]) -> dict[str, str]:
    """Return an address of each host in the first network that all of them have; none without."""
    known = {host.name: [Address(text) for text in host.addresses] for host in hosts}
    for network in (one.network for one in known[hosts[0].name]):
        found = {
            name: str(one.ip)
            for name, own in known.items()
            for one in own
            if one.network == network
        }
        if len(found) == len(set(found.values())) == len(hosts):
            return found
    return {}


def _launchers() -> Iterator[str]:
    yield "launchers:"
    yield line("default", "torchrun", depth=1)
    yield line("allowed", ("torchrun", "spawn", "single"), depth=1)
    yield question("setup", "[source ~/venv/bin/activate]", "which environment has torch?")


def _partition(hosts: Sequence[HostFacts]) -> Iterator[str]:
    yield "partitions:"
    yield line("  - name", "all")
    yield line("    default", True)
    yield line("    cpus_per_node", min(host.cpus for host in hosts))
    yield line("    gpus_per_node", len(hosts[0].gpus))
    models = {model for host in hosts for model in host.gpus}
    if len(models) == 1:
        yield line("    gpu_model", models.pop())
    elif models:
        yield remark(f"different GPUs: {', '.join(sorted(models))}; the slowest sets the pace", 2)


def init_hosts(options: InitOptions, names: Sequence[str]) -> Drafted:
    """Ask the hosts, and write the draft atomically.

    Raises:
        HpcTrainError: a host is named twice or does not answer, the hosts differ, or the file
        cannot be written.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        once = ",".join(dict.fromkeys(names))
        raise SpecError(f"--hosts: {twice[0]!r} is listed twice", f"--hosts {once}")
    name = options.name or (options.output.stem if options.output else "hosts")
    target = target_of(options, name)
    text = draft_hosts(name, datetime.date.today().isoformat(), _ask(names))
    check_draft(name, text, "the answers of the hosts")
    write_draft(target, text, options)
    return Drafted(path=target, name=name, text=text, unread=())


def _ask(names: Sequence[str]) -> list[HostFacts]:
    """Return the facts of all hosts, also whether they see a file of the current folder."""
    file, token = Path(f".hpctrain-{secrets.token_hex(4)}").absolute(), secrets.token_hex(8)
    try:
        write_atomic(file, token.encode())
        answers = at_once(lambda name: call(name, "facts", str(file)), names)
    except OSError as failure:
        raise cannot_write(file, failure) from None
    finally:
        file.unlink(missing_ok=True)
    silent = [
        f"{name}: {one.problem}" for name, one in zip(names, answers, strict=True) if one.problem
    ]
    if silent:
        raise ProbeError("; ".join(silent), "ssh HOST true must work without a question")
    return [_facts(name, answer, token) for name, answer in zip(names, answers, strict=True)]


def _facts(name: str, answer: Answer, token: str) -> HostFacts:
    return read_facts(name, answer.lines, shared=answer.get("text") == token)
