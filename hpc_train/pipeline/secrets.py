"""Before anything is written: the secrets of a job are there, and in none of its scripts."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hpc_train.errors import SpecError
from hpc_train.model.secret import looks_secret
from hpc_train.pipeline.prepare import Prepared, PreparedPoint

# Shorter values are words like `true` that stand in many scripts.
_SHORTEST = 8


def check_secrets(prepared: Prepared) -> None:
    """Look for each secret where the job will, and for none of them in the scripts.

    Raises:
        SpecError: a variable is not set here, a file is missing or others may read it, or a
            script holds the value of one of this shell's secrets.
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
        _check_script(point)


def _check_file(path: Path, where: str) -> None:
    try:
        found = path.stat().st_mode
        if not stat.S_ISREG(found):
            raise SpecError(f"{where}: {path} is no regular file")
        path.open("rb").close()
    except OSError as failure:
        raise SpecError(f"{where}: {path}: {failure.strerror}") from None
    mode = stat.S_IMODE(found)
    if mode & 0o177:
        raise SpecError(f"{where}: {path} has mode {mode:o}, not 600", f"chmod 600 {path}")


def _check_script(point: PreparedPoint) -> None:
    """A shell expands `--token $HF_TOKEN` before hpctrain sees it."""
    named = {secret.name for secret in point.plan.secrets}
    text = f"{point.script.text}\n{point.plan.comment}"
    for name, value in os.environ.items():
        if not (name in named or looks_secret(name)):
            continue
        if len(value) >= _SHORTEST and value in text:
            raise SpecError(
                f"{point.job.origin('command')}: the script would hold the value of {name}, and "
                "scripts are kept and shared",
                f"write `secrets: {{{name}: env}}` and let the program read ${name}",
            )
