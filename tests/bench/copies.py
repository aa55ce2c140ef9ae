"""Copies of one failed study, each to be retried on its own: their runs need not fail again."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpc_train.model.value import Value
from tests.bench.place import HPCTRAIN, Place


class Copy(Value, frozen=True, kw_only=True):
    """A copy of the failed study."""

    at: Place
    number: int

    @property
    def results(self) -> Path:
        """The folder of `--results`."""
        return self.at.folder / str(self.number)

    @property
    def home(self) -> Path:
        """The folder of the study."""
        return self.results / self.at.name

    def call(self, word: str, *words: str) -> list[str]:
        """Return a command line about it."""
        return [*HPCTRAIN, word, self.at.name, "--results", str(self.results), *words]

    def rows(self) -> list[dict[str, Any]]:
        """Return how its runs stand."""
        rows: list[dict[str, Any]] = json.loads(self.at.run(self.call("status", "--json")))["runs"]
        return rows

    def retry(self) -> None:
        """Retry; that there is nothing to retry is an answer."""
        done = subprocess.run(
            self.call("retry"),
            cwd=self.at.folder,
            env=self.at.environment,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0 and "nothing to retry" not in done.stderr:
            raise SystemExit(f"{self.home}: {done.stderr.strip()[-500:]}")


def copies(at: Place, original: Path, numbers: Sequence[int]) -> list[Copy]:
    """Copy the study."""
    made = [Copy(at=at, number=number) for number in numbers]
    for copy in made:
        shutil.copytree(original, copy.home)
        (copy.home / ".submit.lock").unlink()
    return made
