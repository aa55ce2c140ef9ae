"""Checks the hosts of a submission before it: each by itself, and whether they can train together.

By itself: it answers, has programs, free GPUs and a host name of its own, shares a folder, and lets
a run go on without a connection. Together: the same torch and mpirun, and connections among all.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hpc_train.errors import HostsError
from hpc_train.json_files import write_file
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.site_facilities import HostList
from hpc_train.submissions.hosts.program_versions import asking, others, versions
from hpc_train.submissions.hosts.rendezvous_check import ADVICE, Place, apart, gaps
from hpc_train.submissions.hosts.run_on_hosts import busy_gpus
from hpc_train.submissions.hosts.transport import Answer, at_once, call

_ENDED = "logind ends runs there when the last connection by ssh ends (KillUserProcesses)"


class Unusable(NamedTuple):
    """Why a host cannot be used, and the next command."""

    reason: str
    command: str


def check_hosts(home: Path, plans: Sequence[LaunchPlan]) -> tuple[str, ...]:
    """Check that there are enough hosts for the runs below `home`.

    Return those that may run a job by themselves, but not together with the others.

    Raises:
        HostsError: with the reason of each host that cannot be used.
    """
    hosts, nodes = plans[0].host_list, max(plan.topology.nodes for plan in plans)
    if hosts is None:
        raise AssertionError("a plan without hosts")
    gpus = max(plan.topology.gpus_per_node for plan in plans)
    names = [host.name for host in hosts.hosts]
    answers = _answers(home, hosts, gpus)
    wrong = {name: one for name, answer in answers.items() if (one := _fault(name, answer))}
    namesakes = _namesakes(answers)
    _require(nodes, hosts, plans[0].site, {**namesakes, **wrong})
    if nodes == 1:
        return ()
    unequal = dict(namesakes)
    for plan in _different(plans):
        there = [name for name in names if name not in {**wrong, **unequal}]
        unequal |= _other_versions(there, plan)
    _require(nodes, hosts, plans[0].site, {**unequal, **wrong})
    unequal |= _not_meeting(hosts, {**unequal, **wrong}, plans[0])
    _require(nodes, hosts, plans[0].site, {**unequal, **wrong})
    return tuple(name for name in names if name in unequal)


def _require(nodes: int, hosts: HostList, site: str, wrong: Mapping[str, Unusable]) -> None:
    there = len(hosts.hosts) - len(wrong)
    if there >= nodes:
        return
    needed = f"{nodes} hosts are" if nodes > 1 else "1 host is"
    said = "".join(f"\n    {name}: {one.reason}" for name, one in wrong.items())
    raise HostsError(
        f"{site}: {needed} needed, and {there} of {len(hosts.hosts)} can be used:{said}",
        "\n".join(dict.fromkeys(one.command for one in wrong.values())),
    )


def _answers(home: Path, hosts: HostList, gpus: int) -> dict[str, Answer]:
    """Ask each host; one that shares the folder has to read a file of it.

    In a dry run there is no folder.
    """
    names = [host.name for host in hosts.hosts]
    if not (hosts.shared and home.is_dir()):
        folder = "" if hosts.shared else hosts.workdir
        found = at_once(lambda name: call(name, "look", "", str(gpus), folder), names)
        return dict(zip(names, found, strict=True))
    file, text = home / f".shared-{secrets.token_hex(4)}", secrets.token_hex(8)
    write_file(file, text.encode())
    try:
        path = str(file.absolute())
        found = at_once(lambda name: call(name, "look", path, str(gpus)), names)
    finally:
        file.unlink(missing_ok=True)
    unseen = f"does not see {home.absolute()}; state shared: false, or --results a shared folder"
    return {
        name: answer
        if answer.problem or answer.get("text") == text
        else Answer(lines=(*answer.lines, ("unseen", unseen)))
        for name, answer in zip(names, found, strict=True)
    }


def _fault(name: str, answer: Answer) -> Unusable | None:
    """Return why a host cannot be used even for a job by itself."""
    if answer.problem:
        return Unusable(answer.problem, f"ssh {name} true   shows what ssh says")
    missing = [text for word, text in answer.lines if word == "lacks"]
    if missing:
        return Unusable(f"has no {', '.join(missing)}", f"ssh {name}   to install it there")
    if folder := _folder_fault(name, answer):
        return folder
    if (said := answer.get("killed")) is not None:
        return _ended_by_logind(name, said)
    if busy := busy_gpus(answer):
        return Unusable(busy, f"ssh {name} nvidia-smi (or rocm-smi)   shows whose processes")
    return None


def _folder_fault(name: str, answer: Answer) -> Unusable | None:
    if (unseen := answer.get("unseen")) is not None:
        return Unusable(unseen, f"ssh {name} df   shows its file systems")
    if (folder := answer.get("readonly")) is not None:
        return Unusable(
            f"cannot write to {folder}",
            f"ssh {name} ls -ld {folder}   or another workdir: in the profile",
        )
    return None


def _ended_by_logind(name: str, said: str) -> Unusable:
    """Return why runs end with the connection; `said` is the error of systemd-run, if any."""
    if said:
        return Unusable(
            f"{_ENDED}; systemd-run --user does not prevent it: {said}",
            f"ssh {name} systemd-run --user --scope true   shows why",
        )
    return Unusable(_ENDED, f"ssh {name} loginctl enable-linger   lets them go on")


def _namesakes(answers: Mapping[str, Answer]) -> dict[str, Unusable]:
    """Return the hosts with the host name of an earlier one, such as a machine with two names."""
    found, first = {}, dict[str, str]()
    for name, answer in answers.items():
        own = answer.get("hostname")
        if own is not None and first.setdefault(own, name) != name:
            reason = f"has the host name of {first[own]}, {own}; NCCL takes them for one"
            found[name] = Unusable(reason, f"ssh {name} sudo hostnamectl set-hostname {name}")
    return found


def _different(plans: Sequence[LaunchPlan]) -> list[LaunchPlan]:
    """Return a plan for each way in which the ranks on several hosts find their programs."""
    programs = {asking(plan): plan for plan in plans if plan.topology.nodes > 1}
    return [plan for program, plan in programs.items() if program is not None]


def _other_versions(names: Sequence[str], plan: LaunchPlan) -> dict[str, Unusable]:
    found = versions(names, asking(plan) or "")
    return {
        name: Unusable(
            f"has {program} {own}, and {_first_with(found, program, usual)} has {usual}"
            if own
            else f"has no {program}, and {_first_with(found, program, usual)} has {usual}",
            f"ssh {name}   to install {program} {usual} there",
        )
        for name, (program, own, usual) in others(found).items()
    }


def _first_with(found: Mapping[str, Mapping[str, str]], program: str, version: str) -> str:
    return next(name for name, own in found.items() if own.get(program) == version)


def _not_meeting(
    hosts: HostList, wrong: Mapping[str, Unusable], plan: LaunchPlan
) -> dict[str, Unusable]:
    places = [Place(host.name, host.reached) for host in hosts.hosts if host.name not in wrong]
    return {
        name: Unusable(f"{reason}; {ADVICE}", f"ssh {name} ip address   shows its addresses")
        for name, reason in apart(places, gaps(places, plan.rendezvous)).items()
    }
