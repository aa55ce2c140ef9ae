"""Executor `hosts`: machines of a list by ssh, one run of a queue after the other."""

import os
import re
import secrets
import shlex
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from hpc_train.base.errors import HostsError, SiteProfileError, StoreError, SubmitError
from hpc_train.base.files import is_own, is_there
from hpc_train.hosts.queue_runner import files_to_copy, record_end
from hpc_train.hosts.run_on_hosts import (
    ADVICE,
    HostState,
    apart,
    busy_gpus,
    gaps,
    poll,
    report_of,
    stop,
)
from hpc_train.hosts.transport import HOSTS_FILE, Answer, StartedHosts, at_once, call, read_hosts
from hpc_train.plans.plan import JobVar, LaunchPlan, Text
from hpc_train.runs.executor import Executor, ExecutorOptions
from hpc_train.runs.json_files import mark, status_of, write_file
from hpc_train.runs.run import JobReport, JobState, RunFolder, Submission
from hpc_train.runs.run_queue import Queue, is_held, new_queue, start_queue, take
from hpc_train.runs.run_states import has_ended
from hpc_train.sites.profile import HostList, SourcedSite

_RUNNER = "hpc_train.hosts.queue_runner:run_one"
_NOT_OURS = "its hosts.json is damaged, or of another user, who alone can reach its hosts"
_ORPHAN = "it failed on a host, and its supervisor has ended; hpctrain cancel ends it on the others"


class HostsExecutor(Executor):
    """Starts one detached supervisor for the runs of a submission."""

    def refuse(self, site: SourcedSite) -> None:
        """Check that ssh is installed; see `Executor.refuse`."""
        if shutil.which("ssh") is None:
            raise SiteProfileError(
                f"{site.origin('scheduler')}: {site.value.name} is reached by ssh, which is not "
                "installed here",
                "on Debian: apt-get install openssh-client",
            )

    def ready(
        self, home: Path, plans: Sequence[LaunchPlan], options: ExecutorOptions
    ) -> ExecutorOptions:
        """Ask all hosts, and measure the files that they get; see `Executor.ready`."""
        hosts = [(Path(plan.workdir or "."), plan.host_list) for plan in plans]
        for folder in {folder for folder, one in hosts if one is not None and not one.shared}:
            files_to_copy(folder, home.parent)
        return msgspec.structs.replace(options, apart=check_hosts(home, plans))

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Start a supervisor that runs `runs` in order; see `Executor.submit`."""
        start_queue(new_queue(home), runs, "hosts", _RUNNER, options)

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """Ask each host once, for all runs on it; see `Executor.query`.

        If the supervisor of a run has ended before the run, its end is recorded here.
        """
        active = {run: one for run, one in runs.items() if not has_ended(status_of(run))}
        placed = {run: hosts for run in active if (hosts := read_hosts(run)) is not None}
        states = poll(placed)
        reports: dict[RunFolder, JobReport | None] = {}
        for run, submission in active.items():
            queue = _queue_of(run, submission)
            if run not in placed and is_there(run.path / HOSTS_FILE):
                reports[run] = JobReport(state=JobState.UNKNOWN, reason=_NOT_OURS)
            elif run in placed:
                reports[run] = _started(run, queue, placed[run], states[run])
            else:
                reports[run] = _waiting(run, queue)
        return {run: report for run, report in reports.items() if report is not None}

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """Mark all runs first, so that none of them is started; see `Executor.cancel`."""
        for run, submission in runs.items():
            mark(run, submission, JobState.CANCELLED, "cancelled by the user")
        left: dict[str, str] = {}
        for run in runs:
            hosts = read_hosts(run)
            if hosts is not None and not has_ended(status_of(run)):
                left.update(stop(hosts))
                _record_cancelled(run, _queue_of(run, runs[run]), hosts)
        if left:
            said = "; ".join(f"{name}: {reason}" for name, reason in left.items())
            raise SubmitError(
                f"cancelled, but processes may continue on {', '.join(left)}: {said}",
                "they end at the time limit, or when the supervisor reaches the host again",
            )


def _queue_of(run: RunFolder, submission: Submission) -> Queue:
    return Queue(home=run.path.parent, queue_id=submission.native_id)


def _waiting(run: RunFolder, queue: Queue) -> JobReport:
    """Return the state of a run that has no hosts yet, with what its supervisor said of it."""
    held = is_held(queue.file("lock"))
    if held is None:
        return JobReport(state=JobState.UNKNOWN, reason="its queue cannot be read")
    state = JobState.PENDING if held else JobState.LOST
    return JobReport(state=state, reason=queue.reason(run.run_id))


def _started(
    run: RunFolder, queue: Queue, hosts: StartedHosts, states: Sequence[HostState]
) -> JobReport | None:
    """Return the state of a run on its hosts; None if its files contain its end."""
    report = report_of(states)
    if not all(state.ended for state in states):
        orphan = not is_held(queue.file("lock")) and any(state.failed for state in states)
        return msgspec.structs.replace(report, reason=_ORPHAN) if orphan else report
    if not is_own(run.path):
        return report
    try:
        if _record(run, queue, hosts, states):
            return None
    except (StoreError, OSError):
        return report
    # Its supervisor is about to record the end.
    return msgspec.structs.replace(report, state=JobState.RUNNING, reason="")


def _record(run: RunFolder, queue: Queue, hosts: StartedHosts, states: Sequence[HostState]) -> bool:
    """Record the end of a run, unless its supervisor is there, which does so.

    Raises:
        StoreError, OSError: it cannot be written.
    """
    lock = take(queue.file("lock"))
    if lock is None:
        return False
    if not has_ended(status_of(run)):
        record_end(run, hosts, states, report_of(states))
    os.close(lock)
    return True


def _record_cancelled(run: RunFolder, queue: Queue, hosts: StartedHosts) -> None:
    """Fetch the logs of a cancelled run that has no supervisor."""
    states = poll({run: hosts})[run]
    if all(state.ended for state in states):
        with suppress(StoreError, OSError):
            _record(run, queue, hosts, states)


# Checks the hosts of a submission before it: each by itself, and whether they can train together.
#
# By itself: it answers, has programs, free GPUs and a host name of its own, shares a folder, and
# lets a run go on without a connection. Together: the same torch and mpirun, and connections among
# all.

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
    # One plan for each way in which the ranks on several hosts find their programs.
    programs = {asking(plan): plan for plan in plans if plan.topology.nodes > 1}
    for plan in (plan for program, plan in programs.items() if program is not None):
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


# The first word of a line of a host -> what is wrong, and the next command.
_FAULTS = {
    "lacks": ("has no {}", "ssh {name}   to install it there"),
    "unseen": ("{}", "ssh {name} df   shows its file systems"),
    "readonly": (
        "cannot write to {}",
        "ssh {name} ls -ld {}   or another workdir: in the profile",
    ),
}


def _fault(name: str, answer: Answer) -> Unusable | None:
    """Return why a host cannot be used even for a job by itself."""
    if answer.problem:
        return Unusable(answer.problem, f"ssh {name} true   shows what ssh says")
    for first, (reason, command) in _FAULTS.items():
        if text := ", ".join(text for word, text in answer.lines if word == first):
            return Unusable(reason.format(text), command.format(text, name=name))
    if said := answer.get("killed"):
        return Unusable(
            f"{_ENDED}; systemd-run --user does not prevent it: {said}",
            f"ssh {name} systemd-run --user --scope true   shows why",
        )
    if said is not None:
        return Unusable(_ENDED, f"ssh {name} loginctl enable-linger   keeps them running")
    if busy := busy_gpus(answer):
        return Unusable(busy, f"ssh {name} nvidia-smi (or rocm-smi)   shows whose processes")
    return None


def _namesakes(answers: Mapping[str, Answer]) -> dict[str, Unusable]:
    """Return the hosts with the host name of an earlier one, such as a machine with two names."""
    found, first = {}, dict[str, str]()
    for name, answer in answers.items():
        own = answer.get("hostname")
        if own is not None and first.setdefault(own, name) != name:
            reason = f"has the host name of {first[own]}, {own}; NCCL treats both as one host"
            found[name] = Unusable(reason, f"ssh {name} sudo hostnamectl set-hostname {name}")
    return found


def _other_versions(names: Sequence[str], plan: LaunchPlan) -> dict[str, Unusable]:
    """Return the hosts without the versions of programs that most have, the earliest of equals."""
    program = (asking(plan) or "").encode()
    answers = at_once(lambda name: call(name, "versions", given=program), names)
    found = {
        name: " and ".join(text for word, text in answer.lines if word == "version")
        for name, answer in zip(names, answers, strict=True)
    }
    ((usual, _),) = Counter(filter(None, found.values())).most_common(1) or [("", 0)]
    first = next((name for name, own in found.items() if own == usual), "")
    return {
        name: Unusable(
            f"has {own}, and {first} has {usual}" if own else f"has no {usual}, which {first} has",
            f"ssh {name}   to install {usual} there",
        )
        for name, own in found.items()
        if own != usual
    }


def _not_meeting(
    hosts: HostList, wrong: Mapping[str, Unusable], plan: LaunchPlan
) -> dict[str, Unusable]:
    places = [host for host in hosts.hosts if host.name not in wrong]
    return {
        name: Unusable(f"{reason}; {ADVICE}", f"ssh {name} ip address   shows its addresses")
        for name, reason in apart(places, gaps(places, plan.rendezvous)).items()
    }


_PYTHON = re.compile(r"\A(?:/.*/)?python[0-9.]*\Z")
# The launcher's variable in argv: the script starts mpirun on several hosts.
_MPI = "mpi_hosts"
_PRINT = 'import importlib.metadata as m; print("version torch", m.version("torch"))'
_MPI_VERSION = "mpirun --version | sed -n '1s/^mpirun /version mpirun /p'"


def asking(plan: LaunchPlan) -> str | None:
    """Return a program of bash that prints the versions that the ranks of a plan use.

    The lines of the setup are those of the script. None if it is not known what the ranks use:
    that of an image, or of a program that is neither Python nor started by mpirun.
    """
    argv = plan.launch.argv
    words = [token.text for token in argv if isinstance(token, Text)]
    python = next((word for word in words if _PYTHON.search(word)), None)
    asked = [_MPI_VERSION] if JobVar(name=_MPI) in argv else []
    asked += [f"exec {shlex.join((python, '-c', _PRINT))}"] if python else []
    if not asked or plan.container is not None:
        return None
    modules = (
        *(("module purge",) if plan.modules_purge else ()),
        *(f"module use {shlex.quote(folder)}" for folder in plan.modules_use),
        *(f"module load {shlex.quote(name)}" for name in plan.modules),
    )
    # The folder of the job is not copied yet; one with an environment in it may be there.
    folder = f"cd -- {shlex.quote(plan.workdir or '.')} 2>/dev/null"
    return "\n".join((folder, *modules, *plan.setup, *asked, ""))
