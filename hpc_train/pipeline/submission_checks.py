"""Checks before anything is written: scheduler; secrets, folder, program, launcher of each job."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from hpc_train.errors import SpecError, SubmitError, nearest
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Sourced
from hpc_train.pipeline.prepared import Prepared, PreparedPoint
from hpc_train.pipeline.run_states import executor_of
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.plans.storage import CHECKPOINTS
from hpc_train.sites.submit_folder import check_place

# Directives are in the first lines of a script.
_HEAD = 4096


def check_start(prepared: Prepared) -> None:
    """Check the scheduler, and the secrets, folder, program, script and launcher of each job.

    Raises:
        SpecError: a secret, program or script does not exist, or is not executable; runs share
        their checkpoints.
        SiteProfileError: the scheduler's commands do not exist here. SubmitError:
        the launcher is not installed.
    """
    check_checkpoint_folders(prepared)
    for site in prepared.sites:
        if site.choice is not None:
            site.choice.check()
        check_site(site.site)
    check_secrets(prepared)
    for point in prepared.points:
        local = point.place.batch.this_machine
        _check_folder(point)
        # The contents of an image are not visible here.
        if point.plan.container is None:
            _check_program(point, on_path=local)
        # The nodes of a cluster may have programs, after modules are loaded, that its login node
        # lacks.
        if local:
            _check_launcher(point)
        if point.request is not None:
            executor_of(point.plan.scheduler).check(point.plan, point.request)


def check_checkpoint_folders(prepared: Prepared) -> None:
    """Check that each run of a study has its own checkpoints: it would resume from another's.

    Raises:
        SpecError: two runs name one folder.
    """
    if prepared.study is None:
        return
    repetitions = prepared.study.spec.repetitions
    owners: dict[tuple[str, str], str] = {}
    for point in prepared.points:
        folder = str(point.job.value.env.get(CHECKPOINTS, ""))
        # A request starts a container of its own, with its own file system.
        if not folder or point.request is not None:
            continue
        first = owners.setdefault((point.place.name, os.path.normpath(folder)), point.stem)
        if first != point.stem or repetitions > 1:
            who = f"{first} and {point.stem}" if first != point.stem else "its repetitions"
            raise SpecError(
                f"{point.job.near(f'env.{CHECKPOINTS}')}: env.{CHECKPOINTS} = {folder} is one "
                f"folder for several runs of the study ({who}): each would resume from the "
                "checkpoints of another",
                f"leave env.{CHECKPOINTS} out: each run has a folder of its own",
            )


def check_site(site: Sourced[SiteProfile]) -> None:
    """Check the folder of the submission, and whether this host can submit to the scheduler.

    Raises:
        SiteProfileError: its commands do not exist here. PlanError: the site requires another
        folder.
    """
    check_place(site)
    executor_of(site.value.scheduler).refuse(site)


def _check_launcher(point: PreparedPoint) -> None:
    launcher = find_launcher(point.plan.launcher)
    if launcher.program and not shutil.which(launcher.program):
        origin = point.plan.settings["launcher"].origin
        owner = f" of {launcher.package}" if launcher.package else ""
        raise SubmitError(f"{origin}: {launcher.program}{owner} is not installed here")


def _check_folder(point: PreparedPoint) -> None:
    folder = point.plan.workdir
    if folder is not None and not Path(folder).is_dir():
        raise SpecError(f"{point.job.origin('workdir')}: the folder {folder} does not exist")


def _check_program(point: PreparedPoint, *, on_path: bool) -> None:
    folder = Path(point.plan.workdir or ".")
    where = point.job.near("command.0")
    program, *arguments = point.job.value.command
    if "/" in program:
        _check_executable(folder / program, where)
    elif on_path and not shutil.which(program):
        near = folder / program
        hint = f"for the file in this folder write ./{program}" if near.is_file() else ""
        raise SpecError(f"{where}: the program {program!r} is not on PATH", hint)
    script = arguments[0] if arguments else ""
    if Path(program).name.startswith("python") and script.endswith(".py"):
        _check_script(folder / script, point.job.near("command.1"))


def _check_executable(path: Path, where: str) -> None:
    if path.is_dir():
        raise SpecError(f"{where}: {path} is a folder, not a program")
    if not path.is_file():
        hint = "name a script, or a job or study file (.yaml); ls prints the files here"
        raise SpecError(f"{where}: {path} does not exist{_near(path)}", hint)
    with path.open("rb") as stream:
        if b"\n#SBATCH " in stream.read(_HEAD):
            hint = f"name the program that it starts; hpctrain lint {path.name} checks the script"
            raise SpecError(f"{where}: {path.name} is a job script, which sbatch submits", hint)
    if not os.access(path, os.X_OK):
        raise SpecError(f"{where}: {path} is not executable", f"chmod +x {path}")


def _check_script(path: Path, where: str) -> None:
    if not path.is_file():
        raise SpecError(
            f"{where}: the script {path} does not exist{_near(path)}",
            "jobs start in the current folder; `workdir:` in the job file changes that",
        )


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    return nearest(path.name, sorted(entry.name for entry in path.parent.iterdir()))


def check_secrets(prepared: Prepared) -> None:
    """Check each secret at the place where the job reads it.

    Raises:
        SpecError: a variable is not set here, a file is missing or readable by others.
    """
    for point in prepared.points:
        for secret in point.plan.secrets:
            place = point.job.near(f"secrets.{secret.name}")
            if secret.file is not None:
                _check_file(Path(secret.file), f"{place}: secrets.{secret.name}")
            elif secret.name not in os.environ:
                raise SpecError(
                    f"{place}: {secret.name} is not set in this shell", f"export {secret.name}=…"
                )


def _check_file(path: Path, where: str) -> None:
    try:
        found = path.stat().st_mode
        if not stat.S_ISREG(found):
            raise SpecError(f"{where}: {path} is not a regular file")
        path.open("rb").close()
    except OSError as failure:
        raise SpecError(f"{where}: {path}: {failure.strerror}") from None
    mode = stat.S_IMODE(found)
    if mode & 0o177:
        raise SpecError(f"{where}: {path} has mode {mode:o}, not 600", f"chmod 600 {path}")
