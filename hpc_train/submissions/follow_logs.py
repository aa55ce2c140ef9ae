"""The logs of a run, read as they grow."""

import time
from collections.abc import Iterator
from pathlib import Path

from hpc_train.base.errors import StoreError
from hpc_train.base.files import files_in, open_regular, read_regular
from hpc_train.diagnosis.diagnose_runs import failed_rank
from hpc_train.runs.run import Run
from hpc_train.runs.run_folders import find, is_run, run_folders
from hpc_train.runs.run_states import Watch, executor_of


class RunLogs:
    """The logs of one run, of all ranks or of one; of each, only the last `lines` if given.

    Those of a failed run begin with its `first_rank`, the one that failed first.

    Raises:
        HpcTrainError: `word` names no run, or several.
    """

    def __init__(
        self, word: str, root: Path, *, rank: int | None = None, lines: int | None = None
    ) -> None:
        self._folder = one_run(find(root, word))
        self._rank = rank
        self._watch = Watch(self._folder)
        self._fetched = 0.0
        self._fetch()
        self.first_rank = failed_rank(self.run()) if rank is None else None
        self._offsets = {path: _start(path, lines) for path in self._files()}

    @property
    def empty(self) -> bool:
        """Whether there was no log yet."""
        return not self._offsets

    def no_log(self, word: str) -> StoreError:
        """Return the error for a run without a log: it has not started, or could not start."""
        run = self.run()
        if self._rank is not None and (names := sorted(p.name for p in self._every_log())):
            return StoreError(f"{word}: rank {self._rank} has no log; logs: {', '.join(names)}")
        if run.state.finished:
            return StoreError(f"{word}: no log; {run.problem or run.state.value}")
        return StoreError(
            f"{word}: no log yet; it is {run.state.value}",
            f"hpctrain status {word}, or logs -f {word}",
        )

    def run(self) -> Run:
        """Return the current state of the run."""
        return self._watch.runs()[0]

    def new_bytes(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the new bytes of each log that has grown."""
        self._fetch()
        for path in self._files():
            with open_regular(path) as stream:
                stream.seek(self._offsets.get(path, 0))
                fresh = stream.read()
            if fresh:
                self._offsets[path] = self._offsets.get(path, 0) + len(fresh)
                yield path.name, fresh

    def _fetch(self) -> None:
        """Get the new lines of a job that cannot write to the folder, as often as its site allows.

        Those of a job that has ended are there.
        """
        run, now = self.run(), time.monotonic()
        if run.submission is None or not run.state.active:
            return
        if self._fetched and now - self._fetched < run.submission.cluster.poll_s:
            return
        executor_of(run.submission.executor).fetch_logs({run.folder: run.submission})
        self._fetched = now

    def _files(self) -> list[Path]:
        name = f"rank-{self._rank}.out"
        return [p for p in self._every_log() if self._rank is None or p.name == name]

    def _every_log(self) -> list[Path]:
        """Return the logs in the order of ranks, the launcher's own first."""
        first = f"rank-{self.first_rank}.out"
        return sorted(
            files_in(self._folder / "logs", "*.out"),
            key=lambda path: (path.name != first, len(path.name), path.name),
        )


def one_run(folder: Path) -> Path:
    """Return the run of a run folder, or the only run in a folder.

    Raises:
        StoreError: there are several runs, or none.
    """
    if is_run(folder):
        return folder
    runs = run_folders(folder)
    if len(runs) != 1:
        names = ", ".join(run.run_id for run in runs[:5]) + (", …" if len(runs) > 5 else "")
        raise StoreError(
            f"{folder.name!r} has {len(runs)} runs; name one run{': ' * bool(names)}{names}",
            f"hpctrain status {folder.name}",
        )
    return runs[0].path


def _start(path: Path, lines: int | None) -> int:
    """Return the offset of the last lines of a log [bytes]."""
    if lines is None:
        return 0
    content = read_regular(path)
    kept = content.splitlines(keepends=True)[-lines:]
    return len(content) - sum(map(len, kept))
