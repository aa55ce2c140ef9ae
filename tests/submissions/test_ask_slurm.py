"""`lint --ask`: what sbatch is asked about, with which environment, and what its answer becomes."""

import re
import sys
from pathlib import Path

import pytest

from hpc_train.base.errors import SpecError
from hpc_train.base.values import LintFinding
from hpc_train.lint import ask_slurm as asking
from hpc_train.lint.lint_file import lint_bytes, lint_file, make_linter
from tests.slurm.fake_slurm import FakeSlurm

# It keeps a copy of the script, which is gone afterwards.
COPY = 'cp "${@: -1}" "$S/script.$n"; '
ACCEPTED = COPY + 'echo "sbatch: Job 9 to start at once" >&2; exit 0'
REFUSED = COPY + "echo 'sbatch: error: invalid partition specified: no' >&2; exit 1"
SILENT = "echo 'allocation failure: Unable to contact slurm controller' >&2; exit 1"
PARTITION = "PartitionName=gpu Default=YES TotalNodes=2 State=UP"
SCRIPT = "#!/bin/bash\n#SBATCH --time=1:00:00\n#SBATCH -p no\nsrun python t.py\n"
JOB = "command: [python, t.py]\nresources: {time: 1h}\npartition: no\n"
STUDY = """\
name: s
job: {command: [python, t.py], resources: {cpus_per_task: 4, time: 1h}}
axes: {nodes: [1, 2]}
scaling: strong
"""


@pytest.fixture(autouse=True)
def fresh(slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asking.resources.cache_clear()
    asking.accounts.cache_clear()
    slurm.on("sbatch", ACCEPTED)


def asked(name: str, text: str, **options: object) -> list[LintFinding]:
    """Write a file, and return the findings on it, without those that are always there."""
    Path(name).write_text(text, encoding="utf-8")
    linter = make_linter(ask=True, **options)  # type: ignore[arg-type]
    return [one for one in lint_file(Path(name), linter).findings if one.id.startswith("HT8")]


def test_sbatch_judges_the_script_and_submits_nothing(slurm: FakeSlurm) -> None:
    (found,) = asked("my.sbatch", SCRIPT)
    assert (found.id, found.line, found.severity) == ("HT802", 1, "info")
    assert found.message == "Slurm accepts the script, to start at once"
    (argv,) = slurm.calls("sbatch")
    assert (argv[0], Path(argv[1]).name, len(argv)) == ("--test-only", "my.sbatch", 2)
    assert (slurm.folder / "script.1").read_text() == SCRIPT
    assert not Path(argv[1]).exists()
    assert slurm.ids() == []


def test_a_refusal_says_what_the_cluster_allows(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", REFUSED)
    slurm.on("scontrol", f'[ "$2" = partition ] && {{ echo "{PARTITION}"; exit; }}')
    (found,) = asked("my.sbatch", SCRIPT)
    assert (found.id, found.line, found.severity) == ("HT801", 3, "error")
    assert "invalid partition specified: no" in found.message
    assert "partitions: gpu; sinfo -s lists the partitions" in found.advice


def test_facts_are_read_once_for_all_files(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", REFUSED)
    linter = make_linter(ask=True)
    for _ in range(3):
        lint_bytes(SCRIPT.encode(), linter, "-")
    assert len(slurm.calls("sbatch")) == 3
    assert len(slurm.calls("scontrol")) == 2


def test_slurm_that_does_not_answer_is_asked_once(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", SILENT)
    linter = make_linter(ask=True)
    for _ in range(2):
        checked, _text = lint_bytes(SCRIPT.encode(), linter, "-")
        (found,) = checked.findings
        assert (found.id, found.severity) == ("HT803", "info")
        assert "Unable to contact slurm controller" in found.message
    assert len(slurm.calls("sbatch")) == 1


def test_a_refusal_has_the_line_of_the_job_file(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", REFUSED)
    (found,) = asked("job.yaml", JOB, site="slurm-generic")
    assert (found.id, found.line) == ("HT801", 3)


def test_each_point_of_a_study_is_asked_about(slurm: FakeSlurm) -> None:
    found = asked("study.yaml", STUDY, site="slurm-generic")
    assert len(slurm.calls("sbatch")) == 2
    assert [(one.id, one.line) for one in found] == [("HT802", 1)] * 2
    for nodes, one in enumerate(found, 1):
        assert re.fullmatch(rf"Slurm accepts point {nodes}-\w+, to start at once", one.message)


def test_a_site_without_slurm_is_not_asked(slurm: FakeSlurm) -> None:
    job = "command: [python, t.py]\n"
    (found,) = asked("job.yaml", job, site="local")
    assert (found.id, found.line) == ("HT803", 1)
    assert "the scheduler of local is local, not Slurm" in found.message
    assert slurm.calls("sbatch") == []


def test_without_sbatch_nothing_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    with pytest.raises(SpecError, match="--ask: sbatch is not on PATH"):
        make_linter(ask=True)


def test_the_environment_is_that_of_a_submission(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SBATCH_QOS", "SBATCH_PARTITION", "SLURM_JOB_ID", "SLURM_CPU_BIND", "RANK"):
        monkeypatch.setenv(name, "1")
    asked("my.sbatch", SCRIPT)
    environment = slurm.environment()
    assert environment["SBATCH_QOS"] == "1"
    removed = {"SBATCH_PARTITION", "SLURM_JOB_ID", "SLURM_CPU_BIND", "RANK"}
    assert not removed & environment.keys()
