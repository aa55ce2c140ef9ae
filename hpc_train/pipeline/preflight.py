"""Before anything is written: can this machine start what the job names?"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hpc_train.errors import SpecError, SubmitError, nearest
from hpc_train.pipeline.prepare import Prepared, PreparedPoint

_PROGRAMS = {"mpirun": "mpirun of Open MPI (on Debian: apt-get install openmpi-bin)"}


def check_start(prepared: Prepared) -> None:
    """Look for each job's program, script, folder and launcher.

    Raises:
        SpecError: a program or script that is not there, or may not be executed.
        SubmitError: the launcher is not installed.
    """
    if prepared.site.value.scheduler != "local":
        raise SpecError(
            f"{prepared.site.value.name}: jobs are not submitted to Slurm by this version",
            "hpctrain render FILE --site SITE -o job.sbatch, then: sbatch job.sbatch",
        )
    for point in prepared.points:
        _check_folder(point)
        _check_program(point)
        missing = _PROGRAMS.get(point.plan.launcher)
        if missing and not shutil.which(point.plan.launcher):
            origin = point.plan.settings["launcher"].origin
            raise SubmitError(f"{origin}: {missing} is not installed here")


def _check_folder(point: PreparedPoint) -> None:
    folder = point.plan.workdir
    if folder is not None and not Path(folder).is_dir():
        raise SpecError(f"{point.job.origin('workdir')}: the folder {folder} does not exist")


def _check_program(point: PreparedPoint) -> None:
    folder = Path(point.plan.workdir or ".")
    where = point.job.origin("command")
    program, *arguments = point.job.value.command
    if "/" in program:
        _check_executable(folder / program, where)
    elif not shutil.which(program):
        near = folder / program
        hint = f"for the file in this folder write ./{program}" if near.is_file() else ""
        raise SpecError(f"{where}: the program {program!r} is not on PATH", hint)
    script = arguments[0] if arguments else ""
    if Path(program).name.startswith("python") and script.endswith(".py"):
        _check_script(folder / script, where)


def _check_executable(path: Path, where: str) -> None:
    if path.is_dir():
        raise SpecError(f"{where}: {path} is a folder, not a program")
    if not path.is_file():
        raise SpecError(f"{where}: {path} does not exist{_near(path)}")
    if not os.access(path, os.X_OK):
        raise SpecError(f"{where}: {path} may not be executed", f"chmod +x {path}")


def _check_script(path: Path, where: str) -> None:
    if not path.is_file():
        raise SpecError(
            f"{where}: the script {path} does not exist{_near(path)}",
            "jobs start where you submit; `workdir:` in the job file changes that",
        )


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    return nearest(path.name, [entry.name for entry in path.parent.iterdir()])
