"""The script of a shared allocation, run by bash: turns, limits, signals, and what is left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from hpc_train.plans.plan import Allocation, NestedRun
from hpc_train.runs.run import JobStatus
from hpc_train.scripts.render import render_allocation
from tests.scripts.job_starts import save
from tests.submissions.waiting import wait_for

HOSTILE = ["a b", "it's", 'say "hi"', "$(touch pwned)", "`touch pwned`", "$HOME", "; touch pwned"]
HOSTILE += ["größe", "*", "-n", "{{ 7 * 7 }}", "back\\slash", "a\nb"]
WELL = '{"started": 1.0, "ended": 2.0, "exit_code": 0, "failure": null}'
CUT_OFF = '{"started": 1.0, "ended": 2.0, "exit_code": 143, "failure": null}'
RUNNING = '{"started": 1.0, "ended": null, "exit_code": null, "failure": null}'


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_runs_take_turns_in_order_and_never_together(bench: Bench) -> None:
    for name in ("c", "a", "b"):
        bench.run(name, f"sleep 0.1; echo out of {name}; echo '{name} ends' >>\"$TRACE\"")
    assert bench.finish(["c", "a", "b"])[0] == 0
    assert bench.traced() == [f"{name} {word}" for name in "cab" for word in ("starts", "ends")]
    assert (bench.home / "a" / "logs" / "job.out").read_text() == "out of a\n"


def test_what_ended_well_or_was_removed_is_left_out(bench: Bench) -> None:
    for name, status in {"well": WELL, "cut-off": CUT_OFF, "lost": RUNNING}.items():
        bench.run(name, "echo again", status)
    assert bench.finish(["removed", "well", "cut-off", "lost"])[0] == 0
    assert bench.traced() == ["cut-off starts", "lost starts"]
    assert not (bench.home / "removed").exists()
    assert not (bench.home / "well" / "logs").exists()


def test_a_failed_run_does_not_stop_the_others(bench: Bench) -> None:
    bench.run("bad", "exit 3")
    bench.run("good", "")
    assert bench.finish(["bad", "good"])[0] == 1
    assert (bench.code("bad"), bench.code("good")) == (3, 0)


def test_a_run_ends_at_its_limit_and_the_next_one_starts(bench: Bench) -> None:
    bench.run("long", "trap 'kill $!; exit 9' TERM; sleep 600 & wait")
    bench.run("next", "")
    # Long enough for the trap to be set.
    process = bench.start({"long": 3, "next": 600})
    process.communicate(timeout=240)
    assert process.returncode == 1
    assert (bench.code("long"), bench.code("next")) == (9, 0)
    assert "its time limit of 3 s" in (bench.home / "long" / "logs" / "job.out").read_text()
    assert "limit" not in (bench.home / "next" / "logs" / "job.out").read_text()


@pytest.mark.parametrize(("own", "kept"), [(9, 9), (0, 143)])
def test_term_ends_the_run_and_starts_no_other(bench: Bench, own: int, kept: int) -> None:
    """A run that was cut off and calls it success would otherwise never be repeated."""
    # No `wait`, at whose end bash may forget what the trap has said.
    program = f"trap 'exit {own}' TERM; echo ready >>\"$TRACE\"; while :; do sleep 0.05; done"
    bench.run("now", program)
    bench.run("never", "")
    process = bench.start({"now": None, "never": None})
    bench.wait_for("ready")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=240)
    assert process.returncode == 143
    assert bench.traced() == ["now starts", "ready"]
    assert not (bench.home / "never" / "logs").exists()
    assert bench.code("now") == kept


def test_a_run_gets_term_once(bench: Bench) -> None:
    """The second of two could end its script before the exit code is recorded."""
    program = (
        'trap \'echo term >>"$TRACE"\' TERM; echo ready >>"$TRACE"\n'
        'until [ -e "$1/go" ]; do sleep 0.05; done; exit 9'
    )
    bench.run("now", program)
    process = bench.start({"now": None})
    bench.wait_for("ready")
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
        bench.wait_for("term")
        wait_for(lambda: not _pending(process.pid))
    (bench.home / "now" / "go").touch()
    process.communicate(timeout=240)
    assert bench.traced() == ["now starts", "ready", "term"]
    assert bench.code("now") == 9


def _pending(pid: int) -> bool:
    """Whether a signal has not been delivered yet (man 5 proc, SigPnd and ShdPnd)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return any(
        int(line.split()[1], 16) for line in status.splitlines() if line[:6] in ("SigPnd", "ShdPnd")
    )


def test_a_script_that_cannot_speak_is_spoken_for(bench: Bench) -> None:
    bench.run("killed", "kill -KILL $$")
    bench.run("gone", "")
    (bench.home / "gone" / "job.sbatch").unlink()
    # Remove the status of an earlier attempt.
    (bench.home / "gone" / "status.json").write_text(CUT_OFF)
    assert bench.finish(["killed", "gone"])[0] == 1
    assert (bench.code("killed"), bench.code("gone")) == (137, 127)
    found = json.loads((bench.home / "killed" / "status.json").read_text())
    assert found["job"] == "77"
    assert abs(found["ended"] - time.time()) < 600


@pytest.mark.process
def test_nothing_of_a_run_is_left_when_the_next_one_starts(bench: Bench) -> None:
    """A process that left its session, and a step on another node."""
    bench.run("leaves", 'setsid sleep 300 & echo $! >"$TRACE.pid"; touch "$TRACE.step"')
    # A zombie has no command line any more.
    bench.run("next", 'grep -qs sleep "/proc/$(cat "$TRACE.pid")/cmdline" && echo alive >>"$TRACE"')
    bench.program("squeue", 'echo 77.batch; [ ! -e "$TRACE.step" ] || echo 77.3')
    bench.program("scancel", 'echo "scancel $*" >>"$TRACE"; rm "$TRACE.step"')
    _, output = bench.finish(["leaves", "next"])
    assert bench.traced() == ["leaves starts", "scancel 77.3", "next starts"]
    assert "ending leftover steps and processes" in output


@pytest.mark.parametrize("folder", ["plain", "a $(touch pwned) 'b' \"c\" größe"])
def test_any_name_is_only_a_name(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    bench = Bench(tmp_path / folder)
    for name in HOSTILE:
        bench.run(name, "")
    code, output = bench.finish(HOSTILE)
    assert code == 0, output
    assert [bench.code(name) for name in HOSTILE] == [0] * len(HOSTILE)
    assert "\n".join(bench.traced()) == "\n".join(f"{name} starts" for name in HOSTILE)
    assert not list(tmp_path.rglob("pwned"))


def test_counts_of_the_allocation_do_not_reach_the_runs(bench: Bench) -> None:
    """Except those from which mpirun learns its hosts."""
    misleading = ("NTASKS", "NPROCS", "NTASKS_PER_NODE", "CPUS_PER_TASK", "TRES_PER_TASK")
    gpus = ("GPUS", "GPUS_PER_NODE")
    kept = {"SLURM_TASKS_PER_NODE": "4(x4)", "SLURM_NODELIST": "n[1-4]", "SLURM_JOB_ID": "77"}
    bench.run("a", "env")
    bench.finish(["a"], **{f"SLURM_{name}": "9" for name in (*misleading, *gpus)}, **kept)
    lines = (bench.home / "a" / "logs" / "job.out").read_text().splitlines()
    ours = {f"{name}={value}" for name, value in os.environ.items()}
    seen = {line for line in lines if line.startswith("SLURM_")} - ours
    assert seen == {f"{name}={value}" for name, value in kept.items()}


@pytest.mark.process
def test_bash_and_shellcheck_have_no_complaint(tmp_path: Path) -> None:
    path = tmp_path / "nested.sbatch"
    text = render_allocation(allocation({"a": None, "it's": 60})).text
    path.write_text(text)
    for argv in (["bash", "-n", str(path)], ["shellcheck", str(path)]):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert text.splitlines()[1:4] == [
        "#SBATCH --job-name=study",
        "#SBATCH --nodes=4",
        "#SBATCH --exclusive",
    ]


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
        save(render_allocation(allocation(turns)), script)
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
