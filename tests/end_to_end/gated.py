"""The job around gated_training.py, as a test sees it: its gates, its starts, its results."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import Slurm
from tests.end_to_end.queue import start_now
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for
from tests.trainer.launching import events, finish, meeting_point, start

# Not by its path: Python would take queue.py beside it for the module of the standard library.
PROGRAM = ("-m", "tests.end_to_end.gated_training")
ROOT = Path(__file__).resolve().parents[2]
# Steps between two gates, and between two checkpoints.
GATE, SAVE = 6, 4
NODES = 9
# Between two questions to Slurm: each is a process, beside the ranks that import torch [s].
POLL_S = 0.3
NODE = {"tasks_per_node": 1, "cpus_per_task": 1, "gpus_per_node": 0, "time": "9m"}
Result = tuple[dict[int, list[Any]], str]


@dataclass
class Training:
    """A training of two ranks on two nodes, held at the gate after step `gate`."""

    user: User
    slurm: Slurm
    name: str
    number: str
    folder: Path
    gate: int = GATE

    def log(self, rank: int = 0) -> str:
        """Return what a rank printed in the last start."""
        log = self.folder / "logs" / f"rank-{rank}.out"
        return log.read_text().rpartition("hpctrain: restart ")[2] if log.exists() else ""

    def reaches_gate(self) -> None:
        """Wait until the last start is held at its gate, or has resumed after its step."""
        words = (f'"held":{self.gate}}}', f'"resumed":{self.gate}}}')
        wait_for(
            lambda: all(any(w in self.log(rank) for w in words) for rank in (0, 1)),
            in_vain=self.over,
        )

    def open_gate(self) -> None:
        """Let it train until the next gate."""
        (self.user.folder / self.name / f"go-{self.gate}").touch()
        self.gate += GATE

    def starts(self) -> int:
        """Return the number of starts that ended."""
        file = self.folder / "restarts.jsonl"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def next_end(self, number: int) -> dict[str, Any]:
        """Wait until more than a number of starts have ended; return the last, as `status` does.

        A start whose node was lost has its row when the next start has begun.
        """

        def ended() -> bool:
            if self.starts() <= number:
                start_now(self.number)
            return self.starts() > number

        wait_for(ended, every_s=POLL_S, in_vain=self.over)
        row: dict[str, Any] = self.user.run(self.name)["restarts"][-1]
        return row

    def starts_again(self, number: int) -> None:
        """Wait until Slurm starts the job again, without the two minutes of its delay."""
        log = self.folder / "logs" / "job.out"

        def started() -> bool:
            start_now(self.number)
            return log.exists() and f"hpctrain: restart {number}\n" in log.read_text()

        wait_for(started, every_s=POLL_S, in_vain=self.over)

    def pid(self, rank: int) -> int:
        """Return the process of a rank of the last start."""
        (event,) = events(self.log(rank), "start")
        return int(event["pid"])

    def update(self, change: str) -> None:
        """Change the job in the queue."""
        self.slurm("scontrol", "update", f"jobid={self.number}", change)

    def becomes(self, state: str) -> None:
        """Wait until the job has a state in Slurm."""
        wait_for(lambda: self.state() == state, every_s=POLL_S, in_vain=self.over)

    def state(self) -> str:
        """Return the state of the job in Slurm; empty while it does not answer."""
        argv = ("squeue", "--noheader", "--states=all", f"--jobs={self.number}", "--format=%T")
        return subprocess.run(argv, capture_output=True, text=True).stdout.strip()

    def over(self) -> str:
        """Say that the job has ended, with what it wrote; nothing as long as it has not."""
        state = self.state()
        if state not in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"):
            return ""
        logs = sorted((self.folder / "logs").glob("*.out"))
        return f"{self.name} is {state}\n" + "\n".join(
            f"{log.name}: {log.read_text(errors='replace')[-4000:]}" for log in logs
        )


def down_to_rank(pid: int) -> list[int]:
    """Return torchrun's process of a rank, the wrapper of the rank, and the rank."""
    found = [pid]
    while b"torch" not in Path(f"/proc/{found[0]}/cmdline").read_bytes():
        stat = Path(f"/proc/{found[0]}/stat").read_text()
        found.insert(0, int(stat.rpartition(")")[2].split()[1]))
    return found


def submit(user: User, slurm: Slurm, name: str, steps: int, **keys: Any) -> Training:
    """Submit a training with more keys of a job."""
    gates = user.folder / name
    gates.mkdir()
    spec = {
        "name": name,
        "command": ["python", *PROGRAM, str(steps), str(SAVE), str(GATE), str(gates)],
        "qos": "normal",
        "signal_before_end": "2m",
        "resources": {"nodes": 2, **NODE},
        **keys,
    }
    return submitted(user, slurm, spec)


def only(nodes: str) -> dict[str, str]:
    """Return the directive that keeps a job on some nodes of the lab, such as `1,2`."""
    others = (f"lab{n}" for n in range(1, NODES + 1) if str(n) not in nodes.split(","))
    return {"exclude": ",".join(others)}


def submitted(user: User, slurm: Slurm, spec: dict[str, Any]) -> Training:
    """Submit a job around a program with gates."""
    name = spec["name"]
    done = user.submit(user.write(f"{name}.yaml", spec))
    assert done.returncode == 0, done.stderr
    run = user.run(name)
    return Training(user, slurm, name, run["job"], Path(user.folder, run["folder"]))


def undisturbed(folder: Path, steps: int) -> list[Result]:
    """Return the result of each rank of a training that nothing disturbs, without Slurm."""
    common = {**meeting_point(), "WORLD_SIZE": 2, "PYTHONPATH": ROOT}
    common["HPCTRAIN_CHECKPOINTS"] = folder / "undisturbed"
    ranks = [
        start((*PROGRAM, str(steps), str(SAVE), "0", folder), **common, RANK=rank)
        for rank in (0, 1)
    ]
    found = [finish(rank) for rank in ranks]
    assert [code for code, _, _ in found] == [0, 0], found
    return [result(out) for _, out, _ in found]


def result(log: str) -> Result:
    """Return loss and samples of each step, the last time that it was trained; and the weights."""
    steps = {event["step"]: [event["loss"], event["seen"]] for event in events(log, "step")}
    (end,) = events(log, "end")
    return dict(sorted(steps.items())), str(end["weights"])
