"""A live cluster -> draft of a site profile that loads and renders a job."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hpc_train.base.errors import HpcTrainError, ProbeError, SpecError
from hpc_train.base.files import write_atomic
from hpc_train.base.value import Value
from hpc_train.machine.draft_profile import Findings, draft, launcher_programs
from hpc_train.machine.probe_job import Probed, ProbeJob, probe
from hpc_train.machine.starter_job import starter_job
from hpc_train.runs.json_files import cannot_write
from hpc_train.sites.detection import find_scheduler
from hpc_train.slurm.live_cluster import read_cluster

# What scontrol says where a package has installed it, and nothing has configured it.
_UNCONFIGURED = "configuration source"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class InitOptions(Value, frozen=True, kw_only=True):
    """Options of a draft; the last two count if nodes are probed."""

    name: str | None = None
    output: Path | None = None
    force: bool = False
    probe: bool = False
    partition: str | None = None
    srun: tuple[str, ...] = ()

    def given_name(self) -> str:
        """Return the name of the profile, empty without one.

        Raises:
            SpecError: it is not valid, or its file exists.
        """
        name = self.name or (self.output.stem if self.output else "")
        if name:
            self.target(name)
        return name

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


class Drafted(Value, frozen=True, kw_only=True):
    """The file that was written, and errors of commands."""

    path: Path
    name: str
    text: str
    unread: tuple[str, ...]


def as_name(cluster: str) -> str:
    """Return the name of a profile for a cluster."""
    return re.sub(r"[^a-z0-9._-]+", "-", cluster.lower())


def init_site(options: InitOptions) -> Drafted:
    """Query the cluster, and write the draft atomically.

    Raises:
        HpcTrainError: no Slurm, no answer, an existing file, or one that cannot be written.
    """
    # Errors in the options are reported before Slurm is queried.
    given = options.given_name()
    _check_slurm()
    cluster = read_cluster()
    name = given or as_name(cluster.name)
    options.target(name)
    job = ProbeJob(partition=options.partition, options=options.srun)
    probed = probe(cluster, job) if options.probe else Probed(hardware={})
    findings = Findings(
        name=name,
        date=datetime.date.today().isoformat(),
        cluster=cluster,
        hardware=probed.hardware,
        programs=tuple(filter(shutil.which, filter(None, launcher_programs().values()))),
        slurm_conf=os.environ.get("SLURM_CONF"),
    )
    unread = [*cluster.unread, *probed.unread]
    unread += (one for machine in probed.hardware.values() for one in machine.unread)
    return write_draft(options, name, draft(findings), f"Slurm's answers on {cluster.name}", unread)


def _check_slurm() -> None:
    """Refuse a machine without a scheduler that can be asked.

    Raises:
        ProbeError: with the schedulers that were looked for, and the other kinds of drafts.
    """
    found, problem = find_scheduler(os.environ)
    installed = shutil.which("scontrol") is not None and _UNCONFIGURED not in problem.lower()
    if installed or (found is not None and found.kind == "Slurm"):
        return
    here = f"{found.kind} ({found.evidence}) and neither" if found else "neither"
    said = f"; `scontrol show config`: {problem}" if problem else ""
    raise ProbeError(
        f"this machine has {here} Slurm (scontrol) nor PBS (qstat){said}",
        "run it on a login node, with SLURM_CONF if needed; machines that ssh reaches: "
        "hpctrain site init --hosts a,b",
    )


def write_draft(
    options: InitOptions, name: str, text: str, source: str, unread: Iterable[str] = ()
) -> Drafted:
    """Write a draft atomically if it loads and a job renders.

    A folder that was made for the file is removed if that fails.

    Raises:
        ProbeError: the draft is not valid; `source` says what it was made from.
        HpcTrainError: it exists, or cannot be written.
    """
    path = options.target(name)
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
    made = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without --force it fails if another process has written the file meanwhile.
        write_atomic(path, text.encode(), replace=options.force)
    except OSError as failure:
        if isinstance(failure, FileExistsError) and path.exists():
            raise SpecError(f"{path} exists already", "another one: -o FILE") from None
        if made:
            with suppress(OSError):
                path.parent.rmdir()
        raise cannot_write(path, failure) from None
    return Drafted(path=path, name=name, text=text, unread=tuple(dict.fromkeys(unread)))
