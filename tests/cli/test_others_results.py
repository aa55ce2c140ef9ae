"""Results in a folder of another user, who lets nobody in."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_mistakes import HPCTRAIN, STORED
from tests.project.test_homes import STRANGER, isolates


@pytest.mark.skipif(not isolates(), reason="no namespaces of users here")
@pytest.mark.parametrize("words", ["status", "report bad", "logs bad", "retry bad"])
def test_results_that_another_user_keeps_to_himself(tmp_path: Path, words: str) -> None:
    shutil.copytree(STORED / "results", tmp_path / "theirs")
    (tmp_path / "theirs").chmod(0)
    command = [*STRANGER, *HPCTRAIN, *words.split(), "--results", "theirs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert re.fullmatch(
        r"hpctrain: theirs\S*: Permission denied\n  ls -ld theirs\S* prints who has access; .+\n",
        done.stderr,
    )
