"""What is checked and said before a submission, when nothing is written."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from math import sqrt
from pathlib import Path

from hpc_train.base.errors import SpecError, SubmitError, nearest
from hpc_train.plans.launchers.base import find_launcher
from hpc_train.plans.storage import CHECKPOINTS
from hpc_train.runs.run_states import executor_of
from hpc_train.scripts.prepare import Prepared, PreparedPoint

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
    if prepared.site.choice is not None:
        prepared.site.choice.check()
    executor_of(prepared.site.site.value.scheduler).refuse(prepared.site.site)
    check_secrets(prepared)
    local = prepared.site.batch.this_machine
    for point in prepared.points:
        folder = point.plan.workdir
        if folder is not None and not Path(folder).is_dir():
            raise SpecError(f"{point.job.origin('workdir')}: the folder {folder} does not exist")
        # The contents of an image are not visible here.
        if point.plan.container is None:
            _check_program(point, on_path=local)
        # The nodes of a cluster may have programs, after modules are loaded, that its login node
        # lacks.
        if local:
            _check_launcher(point)


def check_checkpoint_folders(prepared: Prepared) -> None:
    """Check that each run of a study has its own checkpoints: it would resume from another's.

    Raises:
        SpecError: two runs name one folder.
    """
    if prepared.study is None:
        return
    repetitions = prepared.study.spec.repetitions
    owners: dict[str, str] = {}
    for point in prepared.points:
        folder = str(point.job.value.env.get(CHECKPOINTS, ""))
        # A request starts a container of its own, with its own file system.
        if not folder or point.request is not None:
            continue
        first = owners.setdefault(os.path.normpath(folder), point.stem)
        if first != point.stem or repetitions > 1:
            who = f"{first} and {point.stem}" if first != point.stem else "its repetitions"
            raise SpecError(
                f"{point.job.near(f'env.{CHECKPOINTS}')}: env.{CHECKPOINTS} = {folder} is one "
                f"folder for several runs of the study ({who}): each would resume from the "
                "checkpoints of another",
                f"leave env.{CHECKPOINTS} out: each run has a folder of its own",
            )


def _check_launcher(point: PreparedPoint) -> None:
    launcher = find_launcher(point.plan.launcher)
    if launcher.program and not shutil.which(launcher.program):
        origin = point.plan.settings["launcher"].origin
        owner = f" of {launcher.package}" if launcher.package else ""
        raise SubmitError(f"{origin}: {launcher.program}{owner} is not installed here")


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
    path = folder / script
    if Path(program).name.startswith("python") and path.suffix == ".py" and not path.is_file():
        raise SpecError(
            f"{point.job.near('command.1')}: the script {path} does not exist{_near(path)}",
            "jobs start in the current folder; `workdir:` in the job file changes that",
        )


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


# Expected half width of the 95 % interval of a ratio, n jobs against n, at 2 % noise, computed once
# (tests/scaling/resolution.py); beyond the last, widths shrink as 1/sqrt(n).
WIDTHS = {
    2: 0.1388, 3: 0.0494, 4: 0.0354, 5: 0.0293, 6: 0.0257, 7: 0.0232, 8: 0.0213, 9: 0.0199,
    10: 0.0187, 11: 0.0177, 12: 0.0168, 13: 0.0161, 14: 0.0154, 15: 0.0149, 16: 0.0144, 17: 0.0139,
    18: 0.0135, 19: 0.0131, 20: 0.0127,
}  # fmt: skip
LARGEST = max(WIDTHS)
USUAL_REPETITIONS = (3, 5, 10, 20)


def preview(prepared: Prepared) -> Iterator[str]:
    """Yield the resolution of the repetitions of a study; empty for a job."""
    if prepared.study is None:
        return
    n = prepared.study.spec.repetitions
    more = [other for other in USUAL_REPETITIONS if other > n][:2]
    others = ", ".join(f"{other}: {_resolved(other)}" for other in more)
    aside = f" ({others})" if others else ""
    if n < 2:
        yield f"1 repetition: no interval and no verdict; with more, at 2 % noise{aside}"
    else:
        yield f"{n} repetitions resolve about {_resolved(n)} at 2 % noise{aside}"
    if len(prepared.points) == 1:
        yield "1 point: no speedup; several sizes make one: --nodes 1,2,4, or more values in `axes`"


def _resolved(n: int) -> str:
    width = 100 * expected_width(n)
    return f"±{width:.0f} %" if width >= 2 else f"±{width:.1f} %"


def expected_width(n: int) -> float:
    """Return the expected half width of the interval of a ratio, as a share of it."""
    return WIDTHS.get(n) or WIDTHS[LARGEST] * sqrt(LARGEST / n)
