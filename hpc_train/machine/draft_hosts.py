"""Facts about machines that ssh reaches -> the text of a profile."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from hpc_train.base.errors import ProbeError
from hpc_train.base.value import Value
from hpc_train.machine.draft_profile import (
    GUESSED,
    block,
    common_arch,
    entry,
    heading,
    joined,
    known,
    line,
    question,
    remark,
)

Address = ipaddress.IPv4Interface


class HostFacts(Value, frozen=True, kw_only=True):
    """What a host says of itself; addresses have the length of their prefix."""

    name: str
    cpus: int
    arch: str
    gpus: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    shared: bool = False


def read_facts(name: str, lines: Sequence[tuple[str, str]], *, shared: bool) -> HostFacts:
    """Return the facts in the answer of a host."""
    one = dict(lines)
    return HostFacts(
        name=name,
        cpus=int(one.get("cpus", "1")),
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
    first = hosts[0]
    for host in hosts[1:]:
        if len(host.gpus) != len(first.gpus):
            raise ProbeError(
                f"{host.name} has {len(host.gpus)} GPUs and {first.name} has {len(first.gpus)}: a "
                "job has the same number on each host",
                "write one profile for each kind: hpctrain site init NAME --hosts HOST,…",
            )
    machines = f"Machines by ssh: {', '.join(host.name for host in hosts)}"
    head = heading(name, date, machines, "answers of the hosts by ssh")
    arch = known(arch=common_arch(host.arch for host in hosts))
    launchers = (
        line("default", "torchrun"),
        line("allowed", ("torchrun", "spawn", "single")),
        question("setup", "[source ~/venv/bin/activate]", "which environment has torch?"),
    )
    return joined(
        (*head, line("scheduler", "hosts"), *arch),
        _hosts(hosts),
        block("launchers", launchers),
        block("partitions", entry(_partition(hosts))),
    )


def _hosts(hosts: Sequence[HostFacts]) -> Iterator[str]:
    addresses = common_addresses(hosts)
    rows = []
    for host in hosts:
        address = addresses.get(host.name)
        stated = f", address: {address}" if address else ""
        note = "" if address else f"  # {GUESSED}: the ranks use its name; has it an address?"
        rows.append(f"- {{name: {host.name}{stated}, gpus: {len(host.gpus)}}}{note}")
    yield from block("hosts", rows)
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


def _partition(hosts: Sequence[HostFacts]) -> Iterator[str]:
    models = {model for host in hosts for model in host.gpus}
    yield line("name", "all")
    yield line("default", True)
    yield line("cpus_per_node", min(host.cpus for host in hosts))
    yield line("gpus_per_node", len(hosts[0].gpus))
    if len(models) > 1:
        yield remark(f"different GPUs: {', '.join(sorted(models))}; the slowest sets the pace")
    yield from known(gpu_model=models.pop() if len(models) == 1 else "")
