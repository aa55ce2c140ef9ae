"""Someone on the login node of the lab: a folder, an environment, and commands that are typed."""

import atexit
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hpc_train.lab.state_file import Lab
from hpc_train.runs.run import JobState
from tests.cli.preloaded import LIBRARIES, Preloaded
from tests.servers.hosts import SshHosts
from tests.submissions.waiting import LIMIT_S, wait_for

ROOT = Path(__file__).resolve().parents[2]
Done = subprocess.CompletedProcess[str]
Row = dict[str, Any]
PACKAGES = ("cli", "pipeline", "plans", "runs", "scripts", "sites", "specs", "submissions", "lab")
_FOREIGN = ("HPCTRAIN_", "SLURM_", "SBATCH_")


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Runs `hpctrain` as a user does: a process in a folder, an exit code, two outputs.

    Most are forks of a process that has the libraries and the package: to import them for each look
    at a state would take the processor from the jobs.
    """

    folder: Path
    environment: Mapping[str, str]
    profile: Path

    def hpctrain(self, *words: str | Path, **extra: str) -> Done:
        """Run a command to its end."""
        return commands().run([*map(str, words)], {**self.environment, **extra}, self.folder)

    def submit(self, file: str, *words: str | Path, site: str = "lab") -> Done:
        """Submit a file of this folder."""
        return self.hpctrain("submit", file, "--site", site, *words)

    def python(self, script: str) -> Any:
        """Run a script in the folder; return what it prints, which is JSON."""
        (self.folder / "functions.py").write_text(script)
        done = subprocess.run(
            [sys.executable, "functions.py"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def running(self, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Run a command beside the test; yield it and the file with what it says."""
        said = self.folder / f"{words[0]}.said"
        argv = [sys.executable, "-m", "hpc_train", *words]
        with (
            said.open("wb") as out,
            subprocess.Popen(
                argv, cwd=self.folder, env=self.environment, stdout=out, stderr=subprocess.STDOUT
            ) as process,
        ):
            try:
                yield process, said
            finally:
                process.kill()

    def write(self, file: str, content: Mapping[str, Any]) -> str:
        """Write a job or study; JSON is YAML."""
        (self.folder / file).write_text(json.dumps(content))
        return file

    def site(self, name: str, old: str, new: str) -> str:
        """Copy the profile of the lab under another name, with one change."""
        text = self.profile.read_text()
        assert text.count(old) == 1, text
        text = text.replace(old, new).replace("name: lab\n", f"name: {name}\n")
        (self.folder / f"{name}.yaml").write_text(text)
        return name

    def runs(self, word: str, *words: str | Path) -> dict[str, Row]:
        """Return the rows of `status --json` by run."""
        done = self.hpctrain("status", word, "--json", *words)
        assert done.returncode == 0, done.stderr
        return {row["run"]: row for row in json.loads(done.stdout)["runs"]}

    def run(self, word: str, *words: str | Path) -> Row:
        """Return the row of the only run of a job."""
        (row,) = self.runs(word, *words).values()
        return row

    def until(
        self,
        word: str,
        found: Callable[[Row], bool],
        within_s: float = LIMIT_S,
        every_s: float = 0.3,
    ) -> Row:
        """Wait for something in the row of the only run of a job; return the row that has it.

        A run that has ended otherwise fails at once, with what it wrote.
        """
        rows: list[Row] = []

        def looked() -> bool:
            rows[:] = [self.run(word)]
            return found(rows[0])

        wait_for(looked, within_s, every_s, in_vain=lambda: self._ended(rows))
        return rows[0]

    def wait(self, word: str, state: str, within_s: float = LIMIT_S) -> Row:
        """Wait until the only run of a job has a state; return its row."""
        return self.until(word, lambda row: bool(row["state"] == state), within_s)

    def started(self, word: str) -> Row:
        """Wait until the only run of a job has started; return its row."""
        return self.until(word, lambda row: row["started"] is not None)

    def says(self, word: str, text: str, *logs: str) -> None:
        """Wait until each of some logs of the only run of a job has a text."""
        self.until(word, lambda row: all(text in self._outputs(row).get(log, "") for log in logs))

    def wait_all(self, word: str, state: str = "", within_s: float = LIMIT_S) -> dict[str, Row]:
        """Wait until all runs of a study have ended, or have one state; return their rows."""
        found: dict[str, Row] = {}

        def looked() -> bool:
            found.clear()
            found.update(self.runs(word))
            states = {row["state"] for row in found.values()}
            return states == {state} if state else all(JobState(one).finished for one in states)

        def wrong() -> list[Row]:
            return [row for row in found.values() if row["state"] != state]

        wait_for(looked, within_s, every_s=0.3, in_vain=lambda: self._ended(wrong()))
        return found

    def _ended(self, rows: list[Row]) -> str:
        """Say how one of the runs has ended, with its logs; nothing of those that have not."""
        ended = [row for row in rows if JobState(row["state"]).finished]
        return "\n".join(
            f"{row['run']} is {row['state']}: {row['problem']}\n{self._outputs(row)}"
            for row in ended[:1]
        )

    def all_completed(self, word: str, *words: str | Path) -> dict[str, Row]:
        """Return the rows by run, of which each is COMPLETED; what failed shows its output."""
        rows = self.runs(word, *words)
        failed = {run: row for run, row in rows.items() if row["state"] != "COMPLETED"}
        shown = {run: (row["reason"], self._outputs(row)) for run, row in failed.items()}
        assert rows and not failed, shown
        return rows

    def records(self, word: str, metric: str) -> list[dict[str, Any]]:
        """Return what `collect` finds of a metric."""
        done = self.hpctrain("collect", word, "--json")
        assert done.returncode == 0, done.stderr
        records = [json.loads(line) for line in done.stdout.splitlines()]
        return [record for record in records if record["metric"] == metric]

    def logs(self, word: str) -> dict[str, str]:
        """Return the logs of a run or of the only run of a job, by file name."""
        return self._outputs(self.run(word))

    def _outputs(self, row: Mapping[str, Any]) -> dict[str, str]:
        path = Path(self.folder, row["folder"], "logs")
        return {log.name: log.read_text(errors="replace") for log in path.glob("*.out")}


@cache
def commands() -> Preloaded:
    """Return the process that runs the commands; it ends with this one."""
    folders = {name: f"hpc_train.{name}." for name in PACKAGES}
    found = [
        one.name
        for name, prefix in folders.items()
        for one in pkgutil.walk_packages([str(ROOT / "hpc_train" / name)], prefix)
    ]
    more = ("boto3",) if find_spec("boto3") else ()
    process = Preloaded(libraries=(*LIBRARIES, *more, *found))
    atexit.register(process.end)
    return process


def user_of(lab: Lab | SshHosts, folder: Path) -> User:
    """Return a user of a lab, with nothing of an outer job or site in the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    environment = {
        **kept,
        # The jobs inherit it: torchrun and Python are those of the tests.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}",
        "PYTHONPATH": str(ROOT),
        "XDG_CONFIG_HOME": str(Path(lab.profile).parents[1]),
        "COLUMNS": "100",
    }
    return User(folder=folder, environment=environment, profile=Path(lab.profile))
