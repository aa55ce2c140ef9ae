"""Whether the hosts of a run can connect to each other, before their ranks wait for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hpc_train.model.launchers_and_preflight import Rendezvous
from hpc_train.submissions.hosts.transport import Answer, at_once, call

ADVICE = "check the address of the host in the profile, and the firewalls between the hosts"


class Place(NamedTuple):
    """A host: its name for ssh, and the address at which ranks connect."""

    name: str
    address: str


class Gap(NamedTuple):
    """One host cannot connect to another, at an address and port."""

    of: str
    to: str
    place: str

    def said_of(self, host: str) -> str:
        """Return what is wrong with one of the two hosts."""
        if host == self.of:
            return f"cannot connect to {self.place} of {self.to}"
        return f"is not reached by {self.of} at {self.place}"


def meeting_fault(hosts: Sequence[Place], ports: Rendezvous) -> str:
    """Return which hosts cannot connect to which; empty if all can."""
    found = gaps(hosts, ports)
    said = "; ".join(f"{gap.of} {gap.said_of(gap.of)}" for gap in found)
    return f"{said}; {ADVICE}" if found else ""


def apart(hosts: Sequence[Place], found: Sequence[Gap]) -> dict[str, str]:
    """Return hosts without which no gap is left, and why: first those with the most gaps.

    Of two with as many, it is the later one in the list.
    """
    left, wrong = list(found), dict[str, str]()
    while left:
        counts = Counter(name for gap in left for name in (gap.of, gap.to))
        worst = max(reversed(hosts), key=lambda host: counts[host.name]).name
        own = [gap for gap in left if worst in (gap.of, gap.to)]
        wrong[worst] = own[0].said_of(worst)
        left = [gap for gap in left if gap not in own]
    return wrong


def gaps(hosts: Sequence[Place], ports: Rendezvous) -> list[Gap]:
    """Let each host listen at a free port, and all others connect to it.

    Nothing is known of the connections to a host without python3.
    """
    if len(hosts) < 2:
        return []
    words = (str(ports.port), str(ports.ports))
    answers = at_once(lambda host: call(host.name, "listen", *words), hosts)
    listening = {
        host: answer
        for host, answer in zip(hosts, answers, strict=True)
        if answer.get("pid") is not None
    }
    places = {f"{host.address}:{one.get('port')}": host for host, one in listening.items()}
    try:
        answers = at_once(lambda host: _connect(host, places), hosts)
    finally:
        at_once(
            lambda host: call(host.name, "unlisten", listening[host].get("pid") or ""), listening
        )
    return [
        Gap(of=host.name, to=places[text].name, place=shown(text))
        for host, answer in zip(hosts, answers, strict=True)
        for word, text in sorted(answer.lines)
        if word == "unreached" and text in places
    ]


def shown(place: str) -> str:
    """Return an address with its port, an address of IPv6 in brackets."""
    address, _, port = place.rpartition(":")
    return f"[{address}]:{port}" if ":" in address else place


def _connect(host: Place, places: dict[str, Place]) -> Answer:
    others = [place.rsplit(":", 1) for place, other in places.items() if other != host]
    return call(host.name, "connect", *(word for place in others for word in place))
