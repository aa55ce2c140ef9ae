"""Files: job files by the scripts that they become, and our own scripts without a warning."""

import stat
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from hpc_train.base.errors import SpecError
from hpc_train.lint.lint_file import lint_file, make_linter
from hpc_train.lint.lint_script import lint_script
from hpc_train.scripts.prepare import Request, prepare

LAUNCHERS = ("srun", "torchrun", "mpirun", "spawn", "single")
SIZES = [("slurm-generic", *size) for size in product(LAUNCHERS, (1, 2), (0, 4))]
SIZES = [size for size in SIZES if size[1] != "single" or size[2:] == (1, 0)]
SIZES += [("local", launcher, 1, 0) for launcher in LAUNCHERS if launcher != "srun"]
NESTED = """\
name: s
job: {command: [python, train.py], resources: {cpus_per_task: 4, time: 1h}}
axes: {nodes: [1, 2]}
scaling: strong
placement: nested
"""
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HPCTRAIN_SITE", raising=False)

    def make(name: str, text: str) -> Path:
        Path(name).write_text(text, encoding="utf-8")
        return Path(name)

    return make


def test_the_script_of_a_shared_allocation_has_no_warning(write: Write) -> None:
    prepared = prepare(Request(path=write("study.yaml", NESTED), site="slurm-generic"))
    assert prepared.allocation is not None
    found = lint_script(prepared.allocation.text)
    assert [finding for finding in found if finding.severity != "info"] == []
    checked = lint_file(Path("study.yaml"), make_linter(site="slurm-generic"))
    assert [finding for finding in checked.findings if finding.severity != "info"] == []


def test_findings_come_home_to_the_job_file(write: Write) -> None:
    path = write(
        "job.yaml",
        "command: [python, train.py]\n"
        "env:\n"
        "  NCCL_DEBUG: TRACE\n"
        "  NCCL_P2P_DISABLE: 1  # hpctrain: ignore HT528\n"
        "setup:\n"
        "  - module load cuda\n"
        "  - export CUDA_LAUNCH_BLOCKING=1\n"
        "resources: {time: 1h}\n",
    )
    linter = make_linter(site="slurm-generic")
    found = {finding.id: finding.line for finding in lint_file(path, linter).findings}
    assert found == {"HT523": 3, "HT414": 7}


def test_what_the_profile_sets_is_named_with_its_place(write: Write) -> None:
    write(
        "mine.yaml",
        "schema: 1\nname: mine\ndescription: d\nscheduler: slurm\n"
        "launchers: {default: srun, allowed: [srun]}\nenv: {NCCL_P2P_DISABLE: 1}\n",
    )
    path = write("job.yaml", "command: [python, train.py]\nresources: {time: 1h}\n")
    checked = lint_file(path, make_linter(site="mine.yaml"))
    (finding,) = [found for found in checked.findings if found.severity != "info"]
    assert (finding.id, finding.line) == ("HT528", 1)
    assert finding.message.endswith("(mine.yaml:6)")


def test_mending_keeps_bytes_mode_and_link(write: Write, tmp_path: Path) -> None:
    path = tmp_path / "job.sbatch"
    path.write_bytes(b"#!/bin/bash\n#sbatch -N 1\n# gr\xfcn\npython t.py")
    path.chmod(0o750)
    link = tmp_path / "link.sbatch"
    link.symlink_to(path)
    checked = lint_file(link, make_linter(fix=True))
    assert path.read_bytes() == b"#!/bin/bash\n#SBATCH -N 1\n# gr\xfcn\npython t.py"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert link.is_symlink()
    assert [finding.id for finding in checked.fixed] == ["HT003"]
    before = path.stat().st_mtime_ns
    assert lint_file(link, make_linter(fix=True)).fixed == ()
    assert path.stat().st_mtime_ns == before


def test_a_job_file_is_not_mended(write: Write) -> None:
    path = write("job.yaml", "command: [python, train.py]\n")
    with pytest.raises(SpecError, match="changes scripts only"):
        lint_file(path, make_linter(fix=True))
