"""Run folders as a submission leaves them, and what their jobs write into them."""

import datetime
from pathlib import Path
from typing import Any

from hpc_train.runs.json_files import write_submission
from hpc_train.runs.run import RunFolder, Submission


def runs(home: Path, *names: str, text: str = "#!/bin/bash\n") -> list[RunFolder]:
    """Make run folders with a script."""
    made = []
    for name in names:
        run = RunFolder(path=home / name)
        run.logs.mkdir(parents=True)
        run.script.write_text(text)
        made.append(run)
    return made


def submitted(run: RunFolder, native_id: str, *, age_s: float = 0.0, **more: Any) -> Submission:
    """Write a run's submission.json."""
    now = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age_s)
    when = now.isoformat(timespec="seconds")
    submission = Submission(executor="slurm", native_id=native_id, submitted=when, **more)
    write_submission(run, submission)
    return submission
