"""Machines that ssh reaches -> draft of a site profile that loads and renders a job."""

from __future__ import annotations

import datetime
import secrets
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hpc_train.base.errors import ProbeError, SpecError
from hpc_train.base.files import write_atomic
from hpc_train.hosts.transport import Answer, at_once, call
from hpc_train.machine.draft_hosts import HostFacts, draft_hosts, read_facts
from hpc_train.machine.init_site import Drafted, InitOptions, check_draft, target_of, write_draft
from hpc_train.runs.json_files import cannot_write


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
