"""Whether each host of a run can connect to the rendezvous, before its ranks wait for it."""

from __future__ import annotations

from hpc_train.submissions.hosts.run_on_hosts import fault
from hpc_train.submissions.hosts.started_hosts import StartedHosts
from hpc_train.submissions.hosts.transport import at_once, call


def meeting_fault(started: StartedHosts) -> str:
    """Return which hosts cannot connect to the first one, at its address; empty if all can.

    It is not known, and the text is empty, if the first host has no python3.
    """
    first, *others = started.hosts
    listener = call(first.name, "listen", started.port).get("pid") if others else None
    if listener is None:
        return ""
    try:
        words = (first.address, started.port)
        answers = at_once(lambda host: call(host.name, "connect", *words), others)
    finally:
        call(first.name, "unlisten", listener)
    wrong = [
        f"{host.name} {fault(answer)} of {first.name}"
        for host, answer in zip(others, answers, strict=True)
        if fault(answer)
    ]
    advice = "check the address of the host in the profile, and the firewalls between the hosts"
    return f"{'; '.join(wrong)}; {advice}" if wrong else ""
