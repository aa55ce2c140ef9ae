"""Copies the working folder of a job, and its script, to the hosts: by rsync, else as a tar."""

from __future__ import annotations

import io
import os
import shlex
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import RunFolder
from hpc_train.model.site_facilities import HostList
from hpc_train.model.value import Value
from hpc_train.submissions.hosts.copied_files import files_to_copy
from hpc_train.submissions.hosts.run_on_hosts import fault, folder_key
from hpc_train.submissions.hosts.started_hosts import StartedHost
from hpc_train.submissions.hosts.transport import Answer, call, options
from hpc_train.subprocesses import exchange

_PATIENCE_S = 3600.0
_NO_PROTOCOL = (2, 12, 127)


class Copy(Value, frozen=True, kw_only=True):
    """What the hosts of a run get: files of `folder`, copied to `target`, which may begin with ~.

    With `shared`, they see the folder itself.
    """

    folder: Path
    target: str
    shared: bool
    files: tuple[str, ...]
    script: bytes


def copy_of(run: RunFolder, plan: LaunchPlan, hosts: HostList, results: Path) -> Copy:
    """Return what the hosts of a run get.

    Raises:
        SubmitError: the working folder is too large.
    """
    folder = Path(plan.workdir or ".").absolute()
    return Copy(
        folder=folder,
        target=f"{hosts.workdir}/work/{folder.name or 'root'}-{folder_key(folder)}",
        shared=hosts.shared,
        files=() if hosts.shared else tuple(files_to_copy(folder, results)),
        script=run.script.read_bytes(),
    )


def put(host: StartedHost, copy: Copy) -> Answer:
    """Copy to one host; the answer has the line `folder`, or says what went wrong."""
    answer = _unpack(host.name, host.folder, {"job.sbatch": copy.script})
    if fault(answer):
        return answer
    if copy.shared:
        return Answer(lines=(("folder", str(copy.folder)),))
    made = call(host.name, "make", copy.target)
    target = made.get("folder")
    if target is None or fault(made):
        return made
    sent = _by_rsync(host.name, target, copy) or _by_tar(host.name, target, copy)
    if fault(sent):
        return sent
    names = b"".join(os.fsencode(name) + b"\0" for name in copy.files)
    pruned = call(host.name, "prune", target, given=names)
    return pruned if fault(pruned) else made


def _by_rsync(host: str, target: str, copy: Copy) -> Answer | None:
    """Send what changed; None if rsync is missing here or there, so that a tar has to do."""
    remote = shlex.join(("ssh", *options()))
    argv = (
        *("rsync", "--archive", "--no-owner", "--no-group", "--protect-args"),
        *("--from0", "--files-from=-"),
        *("--rsh", remote, "--", f"{copy.folder}/", f"{host}:{target}/"),
    )
    names = b"".join(os.fsencode(name) + b"\0" for name in copy.files)
    done = exchange(argv, names, _PATIENCE_S)
    if done.returncode == 0:
        return Answer(lines=(("folder", target),))
    # No rsync here or there (127, 12), or a shell there that prints something first (2, 12).
    if done.returncode in _NO_PROTOCOL and "No space" not in done.stderr:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    said = next((line for line in lines if "No space" in line), lines[-1] if lines else "no reason")
    return Answer(lines=(("fault", f"{target}: rsync: {said}"),))


def _by_tar(host: str, target: str, copy: Copy) -> Answer:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in copy.files:
            archive.add(copy.folder / name, name, recursive=False)
    return call(host, "unpack", target, given=stream.getvalue(), within_s=_PATIENCE_S)


def _unpack(host: str, target: str, files: Mapping[str, bytes]) -> Answer:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return call(host, "unpack", target, given=stream.getvalue())


def faults(hosts: Sequence[StartedHost], answers: Sequence[Answer]) -> str:
    """Return why a copy or start failed, with the names of the hosts; empty if it did not."""
    pairs = zip(hosts, answers, strict=True)
    return "; ".join(f"{host.name}: {fault(answer)}" for host, answer in pairs if fault(answer))
