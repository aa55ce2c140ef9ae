"""Checks the hosts of a submission before it: they answer, have programs, and share a folder."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from hpc_train.errors import SubmitError
from hpc_train.json_files import write_file
from hpc_train.model.plan import LaunchPlan
from hpc_train.submissions.hosts.transport import Answer, at_once, call


def check_hosts(home: Path, plans: Sequence[LaunchPlan]) -> None:
    """Check that there are enough hosts for the runs below `home`.

    Raises:
        SubmitError: with the reason of each host that cannot be used.
    """
    hosts, nodes = plans[0].host_list, max(plan.topology.nodes for plan in plans)
    if hosts is None:
        raise AssertionError("a plan without hosts")
    names = [host.name for host in hosts.hosts]
    answers = _answers_about(home, names) if hosts.shared else _answers(names)
    wrong = {name: reason for name, reason in answers.items() if reason}
    there = len(names) - len(wrong)
    if there < nodes:
        needed = f"{nodes} hosts are" if nodes > 1 else "1 host is"
        said = "".join(f"\n    {name}: {reason}" for name, reason in wrong.items())
        raise SubmitError(
            f"{plans[0].site}: {needed} needed, and {there} of {len(names)} can be used:{said}",
            f"ssh {next(iter(wrong))} true   shows what ssh says",
        )


def _answers(names: Sequence[str]) -> dict[str, str]:
    found = at_once(lambda name: call(name, "look"), names)
    namesakes = _namesakes(names, found)
    return {
        name: _fault(answer) or namesakes.get(name, "")
        for name, answer in zip(names, found, strict=True)
    }


def _answers_about(home: Path, names: Sequence[str]) -> dict[str, str]:
    """Write a file, and let each host read it."""
    file, text = home / f".shared-{secrets.token_hex(4)}", secrets.token_hex(8)
    write_file(file, text.encode())
    try:
        path = str(file.absolute())
        found = at_once(lambda name: call(name, "look", path), names)
    finally:
        file.unlink(missing_ok=True)
    namesakes = _namesakes(names, found)
    unseen = f"does not see {home.absolute()}; state shared: false, or --results a shared folder"
    return {
        name: _fault(answer)
        or namesakes.get(name)
        or ("" if answer.get("text") == text else unseen)
        for name, answer in zip(names, found, strict=True)
    }


def _namesakes(names: Sequence[str], answers: Sequence[Answer]) -> dict[str, str]:
    """Return the hosts with the host name of an earlier one, such as a machine with two names."""
    found, first = {}, dict[str, str]()
    for name, answer in zip(names, answers, strict=True):
        own = answer.get("hostname")
        if own is not None and first.setdefault(own, name) != name:
            found[name] = f"has the host name of {first[own]}, {own}; NCCL takes them for one"
    return found


def _fault(answer: Answer) -> str:
    if answer.problem:
        return answer.problem
    missing = [text for word, text in answer.lines if word == "lacks"]
    return f"has no {', '.join(missing)}" if missing else ""
