"""A live cluster, or machines that ssh reaches -> a draft of a site profile that renders a job."""

import datetime
import ipaddress
import os
import re
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hpc_train.base.errors import HpcTrainError, ProbeError, SpecError
from hpc_train.base.files import write_atomic
from hpc_train.base.values import Value
from hpc_train.hosts.transport import at_once, call
from hpc_train.machine.draft_profile import (
    GUESSED,
    block,
    common_arch,
    draft_pbs,
    draft_slurm,
    entry,
    heading,
    joined,
    known,
    launcher_programs,
    line,
    question,
    remark,
)
from hpc_train.machine.probe_job import Probed, probe
from hpc_train.machine.starter_job import starter_job
from hpc_train.pbs.live_pbs import read_pbs, starters
from hpc_train.runs.json_files import cannot_write
from hpc_train.sites.detection import find_scheduler, is_pbs
from hpc_train.slurm.live_cluster import read_cluster

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class InitOptions(Value, frozen=True, kw_only=True):
    """Options of a draft; the last two count if nodes are probed."""

    name: str | None = None
    output: Path | None = None
    force: bool = False
    probe: bool = False
    partition: str | None = None
    srun: tuple[str, ...] = ()

    def target(self, name: str) -> Path:
        """Return the file; a profile has the name of its file.

        Raises:
            SpecError: the name is not valid, or the file exists.
        """
        path = self.output or Path("site_profiles", f"{name}.yaml")
        if not _NAME.fullmatch(name):
            raise SpecError(
                f"{name!r} is not a name of a site: 1 to 100 letters, digits, '.', '_' and '-'",
                "hpctrain site init NAME",
            )
        if path.suffix != ".yaml" or path.stem != name:
            raise SpecError(
                f"-o {path}: the file of the profile {name} must be called {name}.yaml",
                f"hpctrain site init -o {path.with_suffix('.yaml')}",
            )
        if path.exists() and not self.force:
            raise SpecError(
                f"{path} exists already", "choose another with -o FILE, or replace it with --force"
            )
        return path


class Drafted(NamedTuple):
    """The file that was written, its text, and errors of commands."""

    path: Path
    text: str
    unread: tuple[str, ...]


class _Asked(NamedTuple):
    """What a draft is made of: a name, a function of name and date to its text, and the source."""

    name: str
    draft: Callable[[str, str], str]
    source: str
    unread: Sequence[str] = ()


def init_site(options: InitOptions, hosts: Sequence[str] = ()) -> Drafted:
    """Ask the hosts, or the PBS or Slurm of this machine, and write the draft atomically.

    Raises:
        HpcTrainError: no answer, an existing file, or one that cannot be written.
    """
    # Errors in the options are reported before anything is asked.
    name = options.name or (options.output.stem if options.output else "")
    if name:
        options.target(name)
    if hosts:
        asked = _ask_hosts(hosts)
    else:
        asked = _ask_pbs(options) if is_pbs() else _ask_slurm(options)
    name = name or re.sub(r"[^a-z0-9._-]+", "-", asked.name.lower())
    path = options.target(name)
    text = asked.draft(name, datetime.date.today().isoformat())
    _check(text, name, asked.source)
    _write(path, text, force=options.force)
    return Drafted(path, text, tuple(dict.fromkeys(asked.unread)))


def _ask_slurm(options: InitOptions) -> _Asked:
    found, _ = find_scheduler(os.environ)
    is_slurm = found is not None and found.kind == "Slurm"
    # Where they are installed and do not answer, read_cluster says so.
    if not is_slurm and not any(map(shutil.which, ("scontrol", "sinfo"))):
        here = f"{found.kind} ({found.evidence}) and neither" if found else "neither"
        raise ProbeError(
            f"this machine has {here} Slurm (scontrol) nor PBS (qstat)",
            "run it on a login node, with SLURM_CONF if needed; machines that ssh reaches: "
            "hpctrain site init --hosts a,b",
        )
    cluster = read_cluster()
    probed = Probed(hardware={})
    if options.probe:
        probed = probe(cluster, options.partition, options.srun)
    programs = tuple(filter(shutil.which, filter(None, launcher_programs().values())))
    unread = [*cluster.unread, *probed.unread]
    unread += (one for machine in probed.hardware.values() for one in machine.unread)

    draft = partial(draft_slurm, cluster=cluster, hardware=probed.hardware, programs=programs)
    return _Asked(cluster.name, draft, f"Slurm's answers on {cluster.name}", unread)


def _ask_pbs(options: InitOptions) -> _Asked:
    if options.probe:
        raise SpecError("--probe runs a job of Slurm, and this machine has PBS")
    pbs = read_pbs()
    if not pbs.shown:
        closed = ", ".join(queue.name for queue in pbs.queues)
        message = f"the PBS server {pbs.name} has no open queue to which users submit"
        raise ProbeError(
            f"{message}; closed, or reached by routes only: {closed}" if closed else message,
            "qstat -Q shows when one is open, then run site init again",
        )
    draft = partial(draft_pbs, pbs=pbs, programs=starters())
    source = f"the answers of the PBS server {pbs.name}"
    return _Asked(pbs.name.partition(".")[0], draft, source, pbs.unread)


def _ask_hosts(names: Sequence[str]) -> _Asked:
    """Ask the hosts, also whether they see a file of this folder."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        once = ",".join(dict.fromkeys(names))
        raise SpecError(f"--hosts: {twice[0]!r} is listed twice", f"--hosts {once}")
    file, token = Path(f".hpctrain-{secrets.token_hex(4)}").absolute(), secrets.token_hex(8)
    try:
        write_atomic(file, token.encode())
        answers = at_once(lambda name: call(name, "facts", str(file)), names)
    except OSError as failure:
        raise cannot_write(file, failure) from None
    finally:
        file.unlink(missing_ok=True)
    found = list(zip(names, answers, strict=True))
    silent = [f"{host}: {one.problem}" for host, one in found if one.problem]
    if silent:
        raise ProbeError("; ".join(silent), "ssh HOST true must work without a question")
    hosts = [read_facts(host, one.lines, shared=one.get("text") == token) for host, one in found]
    return _Asked("hosts", partial(draft_hosts, hosts=hosts), "the answers of the hosts")


def _check(text: str, name: str, source: str) -> None:
    """Check that a draft loads and a job renders for it; `source` says what it was made from."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder, f"{name}.yaml")
        trial.write_text(text, encoding="utf-8")
        try:
            starter_job(str(trial))
        except HpcTrainError as failure:
            raise ProbeError(
                f"no valid profile from {source}: {failure.message.replace(f'{folder}/', '')}",
                "start from a copy of site_profiles/slurm-generic.yaml, and report this",
            ) from None


def _write(path: Path, text: str, *, force: bool) -> None:
    """Write a draft atomically; a folder that was made for it is removed if that fails."""
    made = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without --force it fails if another process has written the file meanwhile.
        write_atomic(path, text.encode(), replace=force)
    except OSError as failure:
        if made:
            with suppress(OSError):
                path.parent.rmdir()
        if isinstance(failure, FileExistsError) and path.exists():
            raise SpecError(f"{path} exists already", "another one: -o FILE") from None
        raise cannot_write(path, failure) from None


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
        _host_lines(hosts),
        block("launchers", launchers),
        block("partitions", entry(_partition(hosts))),
    )


def _host_lines(hosts: Sequence[HostFacts]) -> Iterator[str]:
    addresses = common_addresses(hosts)
    rows = []
    for host in hosts:
        address = addresses.get(host.name)
        stated = f", address: {address}" if address else ""
        note = "" if address else f"  # {GUESSED}: the ranks use its name; does it have an address?"
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
        yield remark(f"different GPUs: {', '.join(sorted(models))}; all ranks wait for the slowest")
    yield from known(gpu_model=models.pop() if len(models) == 1 else "")
