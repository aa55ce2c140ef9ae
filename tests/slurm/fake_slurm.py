"""Slurm's commands as small bash programs: what they are asked is kept, what they say is set."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.slurm.job_states import FIELD, RECORD

Fake = Callable[[str, str], None]
BUSY = "slurm_load_jobs error: Socket timed out on send/recv operation"

_HEAD = """\
S='{folder}' P=${{0##*/}} n=0
{{
    flock 9
    [ -e "$S/$P.n" ] && read -r n <"$S/$P.n"
    echo $((++n)) >"$S/$P.n"
}} 9>"$S/lock"
printf '%s\\0' "$@" >"$S/$P.$n.argv"
"""
_HOOK = 'if [ -e "$S/$P.hook" ]; then . "$S/$P.hook"; fi\n'
# Its queue is a file in the format that squeue is asked for.
_SBATCH = """\
env -0 >"$S/sbatch.$n.env"
job=$((1000 + n))
queued() {
    local format='%s\\x1fPENDING\\x1fN/A\\x1f\\x1fPriority\\x1fj\\x1f%s\\x1e\\n'
    printf "$format" "$1" "$comment" >>"$S/queue"
}
accept() {
    local comment= elements= word
    for word; do
        case $word in
        --comment=*) comment=${word#*=} ;;
        --array=*) elements=${word#*=} ;;
        esac
    done
    elements=${elements%%\\%*}
    [ -n "$elements" ] || queued "$job"
    for word in ${elements//,/ }; do queued "${job}_$word"; done
}
"""
_BODIES = {
    "sbatch": _SBATCH + _HOOK + 'accept "$@"; echo "Submitted batch job $job"',
    "squeue": _HOOK + 'cat "$S/queue"',
    "sacct": _HOOK + "echo 'Slurm accounting storage is disabled' >&2; exit 1",
    "scancel": _HOOK
    + 'for job; do sed -i "s/^\\($job[^\x1f]*\x1f\\)[A-Z]*/\\1CANCELLED/" "$S/queue"; done',
    "scontrol": _HOOK + "echo 'MaxArraySize            = 1001'",
    "sinfo": _HOOK,
}


def programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Return what puts a program on PATH, before whatever this machine has; its body is bash."""
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(name: str, body: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    make("srun", "true")
    return make


class FakeSlurm:
    """A queue in a file; its jobs never run, and change when a test says so."""

    def __init__(self, folder: Path, make: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in os.environ:
            if name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "HPCTRAIN_")):
                monkeypatch.delenv(name)
        # A real Slurm is given time to finish what it may have begun.
        monkeypatch.setattr("hpc_train.runs.batch_executor._UNDER_WAY_S", 0.0)
        folder.mkdir()
        self.folder = folder
        (folder / "queue").touch()
        for name, body in _BODIES.items():
            make(name, _HEAD.format(folder=folder) + body)

    def on(self, program: str, body: str) -> None:
        """Run bash in a program before what it does; `$n` counts its calls, `$job` is the id."""
        (self.folder / f"{program}.hook").write_text(body + "\n")

    def calls(self, program: str) -> list[list[str]]:
        """Return the arguments of each call of a program."""
        count = self.folder / f"{program}.n"
        last = int(count.read_text()) if count.exists() else 0
        files = [self.folder / f"{program}.{n}.argv" for n in range(1, last + 1)]
        return [file.read_text().split("\0")[:-1] for file in files]

    def environment(self, call: int = 1) -> dict[str, str]:
        """Return what a call of sbatch found in its environment."""
        words = (self.folder / f"sbatch.{call}.env").read_text().split("\0")[:-1]
        return dict(word.split("=", 1) for word in words)

    def becomes(
        self, job: str, state: str, *, start: str = "N/A", nodes: str = "", reason: str = "None"
    ) -> None:
        """Change a job's entry in the queue; its name and comment stay."""
        records = (self.folder / "queue").read_text().split(f"{RECORD}\n")[:-1]
        fields = [record.split(FIELD) for record in records]
        changed = [
            [job, state, start, nodes, reason, *entry[5:]] if entry[0] == job else entry
            for entry in fields
        ]
        assert changed != fields, f"{job} is not in the queue, or is that already"
        text = "".join(FIELD.join(entry) + f"{RECORD}\n" for entry in changed)
        (self.folder / "queue").write_text(text)

    def forgets(self) -> None:
        """Empty the queue, as Slurm does five minutes after a job's end."""
        (self.folder / "queue").write_text("")

    def ids(self) -> list[str]:
        """Return the jobs in the queue."""
        records = (self.folder / "queue").read_text().split(f"{RECORD}\n")[:-1]
        return [record.partition(FIELD)[0] for record in records]


def option(argv: list[str], name: str) -> str | None:
    """Return the value of `--name=value`, or None."""
    values = [word.partition("=")[2] for word in argv if word.startswith(f"--{name}=")]
    assert len(values) <= 1, argv
    return values[0] if values else None
