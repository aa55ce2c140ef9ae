"""Check, before anything is written, that the secrets of a job exist."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hpc_train.errors import SpecError
from hpc_train.pipeline.prepare import Prepared


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
