"""A folder of runs, the script of their shared allocation, and Slurm's programs in small."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hpc_train.model.run import JobStatus
from hpc_train.model.submission import Allocation, NestedRun
from hpc_train.scripts.render import render_allocation
from tests.pipeline.waiting import wait_for

# What every job script does: it says when it starts and, however it ends, with which code.
PREAMBLE = """\
write_status() {
  printf '{"started": 1.0, "ended": %s, "exit_code": %s}\\n' "$1" "$2" >"$run"
}
run=$1/status.json
trap 'write_status 2.0 $?' EXIT
write_status null null
printf '%s\\n' "${1##*/} starts" >>"$TRACE"
"""


class Bench:
    """A folder of runs, and the programs of Slurm that the script calls, in small."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home of the runs"
        self.trace = folder / "trace"
        self.programs = folder / "bin"
        self.home.mkdir()
        self.programs.mkdir()
        self.program("squeue", "exit 0")
        self.program("scancel", "exit 1")

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run(self, name: str, text: str, status: str = "") -> None:
        (self.home / name).mkdir()
        (self.home / name / "job.sbatch").write_text(PREAMBLE + text)
        if status:
            (self.home / name / "status.json").write_text(status)

    def start(self, turns: Mapping[str, int | None], **environment: str) -> subprocess.Popen[str]:
        script = self.home.parent / "nested.sbatch"
        script.write_text(render_allocation(allocation(turns)).text)
        known = {"SLURM_JOB_ID": "77", "TRACE": str(self.trace), **environment}
        path = f"{self.programs}:{os.environ['PATH']}"
        return subprocess.Popen(
            ["bash", str(script), str(self.home)],
            env={**os.environ, **known, "PATH": path},
            cwd=self.home.parent,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def finish(self, turns: Sequence[str], **environment: str) -> tuple[int, str]:
        process = self.start(dict.fromkeys(turns), **environment)
        output, _ = process.communicate(timeout=240)
        return process.returncode, output

    def traced(self) -> list[str]:
        return self.trace.read_text().splitlines() if self.trace.exists() else []

    def code(self, name: str) -> int | None:
        text = (self.home / name / "status.json").read_bytes()
        return msgspec.json.decode(text, type=JobStatus).exit_code

    def wait_for(self, line: str) -> None:
        wait_for(lambda: line in self.traced())


def allocation(turns: Mapping[str, int | None]) -> Allocation:
    return Allocation(
        name="study",
        site="big",
        directives=(("job-name", "study"), ("nodes", "4"), ("exclusive", "")),
        turns=tuple(NestedRun(run_id=run_id, time_s=limit) for run_id, limit in turns.items()),
        warnings=(),
    )
