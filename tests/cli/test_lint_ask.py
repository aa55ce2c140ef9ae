"""`hpctrain lint --ask`: exit codes, text, JSON and stdin."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
SCRIPT = "#!/bin/bash\n#SBATCH --time=1:00:00\n#SBATCH --partition={}\nsrun python t.py\n"
# It accepts the partition gpu only, and prints what a real one of 22.05 does.
SBATCH = """\
#!/bin/bash
[ "$1" = --test-only ] || exit 99
if grep -q partition=gpu "$2"; then
    echo 'sbatch: Job 7 to start at 2026-11-23T18:36:24 using 1 processors on nodes n1' >&2
    exit 0
fi
echo 'sbatch: error: invalid partition specified: no' >&2
echo 'allocation failure: Invalid partition name specified' >&2
exit 1
"""


@pytest.fixture
def path(hpctrain: Hpctrain, tmp_path: Path) -> str:
    """Two scripts, and a PATH with an sbatch alone."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sbatch").write_text(SBATCH)
    (programs / "sbatch").chmod(0o755)
    for name, partition in (("good.sh", "gpu"), ("bad.sh", "no")):
        Path(name).write_text(SCRIPT.format(partition))
    return f"{programs}:/usr/bin:/bin"


def test_each_file_is_asked_about(hpctrain: Hpctrain, path: str) -> None:
    done = hpctrain("lint", "--ask", "good.sh", "bad.sh", PATH=path)
    accepted, submit, refused, meaning = done.stdout.splitlines()
    assert accepted.startswith("good.sh:1: HT802 info: Slurm accepts the script, to start at 2026")
    assert submit.startswith("    submit it")
    assert refused.startswith("bad.sh:3: HT801 error: Slurm refuses the script: invalid partition")
    assert "sinfo -s lists the partitions" in meaning
    assert done.stderr == "hpctrain: 1 error, 1 info in 2 files\n"
    assert done.returncode == 1


def test_without_sbatch_the_exit_code_is_2(hpctrain: Hpctrain, path: str) -> None:
    done = hpctrain("lint", "--ask", "good.sh", PATH="/nonexistent")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "--ask: sbatch is not on PATH" in done.stderr
    assert "leave --ask out" in done.stderr
