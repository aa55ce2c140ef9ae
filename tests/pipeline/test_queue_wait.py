"""`advise --ask`: the script of each size that Slurm is asked about, and its answer as a wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import SpecError
from hpc_train.pipeline.advise import AdviceOptions, advice_on
from tests.submissions.slurm.fake_slurm import FakeSlurm

SITE = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
partitions:
  - {name: gpu, gpus_per_node: 4, gpu_model: A100-SXM4-40GB}
"""
JOB = """\
name: gpt
command: [python, -m, hpc_train.workload.train, --global-batch-size, "512"]
trainer: {model: gpt-124m, strategy: ddp}
resources: {nodes: 1, gpus_per_node: 4, cpus_per_task: 8, time: 5m}
"""
# Two hours from now, the more so with more nodes: the script says how many.
PLANNED = """
script="${@: -1}"; cp "$script" "$S/script.$n"
nodes=$(sed -n 's/^#SBATCH --nodes=//p' "$script")
at=$(date -d "now + $((nodes * 2)) hours" +%Y-%m-%dT%H:%M:%S)
echo "sbatch: Job 9 to start at $at using 8 processors on nodes n1 in partition gpu" >&2; exit 0
"""
LARGE = 'grep -q -e --nodes=4 "${@: -1}" && ' + (
    "{ echo 'sbatch: error: Batch job submission failed: Node count specification invalid' >&2; "
    "exit 1; }\n"
)


@pytest.fixture(autouse=True)
def files(slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(SITE)
    Path("job.yaml").write_text(JOB)
    slurm.on("sbatch", PLANNED)


def asked(file: str = "job.yaml", **options: object) -> dict[int, float | None]:
    """Return the wait [s] of each size of a report."""
    report = advice_on(Path(file), "./mine.yaml", AdviceOptions(ask=True, gpus=16, **options))  # type: ignore[arg-type]
    return {row["ranks"]: row["wait_s"] for row in report.tables[0].records}


def test_each_size_has_the_wait_that_slurm_plans(slurm: FakeSlurm) -> None:
    found = asked()
    assert set(found) == {1, 2, 4, 8, 16}
    for ranks, nodes in ((1, 1), (2, 1), (4, 1), (8, 2), (16, 4)):
        # A loaded machine reads the answer late.
        assert nodes * 7200 - 600 < (found[ranks] or 0) <= nodes * 7200
    assert slurm.ids() == []
    script = (slurm.folder / "script.2").read_text()
    assert "#SBATCH --ntasks-per-node=2" in script


def test_a_study_is_asked_about_at_the_same_sizes(slurm: FakeSlurm) -> None:
    text = JOB.replace("name: gpt\n", "").replace("\n", "\n  ").rstrip()
    Path("study.yaml").write_text(
        f"name: gpt\njob:\n  {text}\naxes: {{nodes: [1, 2]}}\nscaling: strong\n"
    )
    found = asked("study.yaml")
    assert all(found.values())
    assert found == pytest.approx(asked(), abs=600)


def test_the_controller_knows_the_switches(slurm: FakeSlurm) -> None:
    slurm.on(
        "scontrol",
        "echo 'SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]'\n"
        "echo 'SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n[3-4]'; exit",
    )
    report = advice_on(Path("job.yaml"), "./mine.yaml", AdviceOptions(ask=True, gpus=16))
    assert any("{switches: 1@10:00}" in note and "up to 2 nodes" in note for note in report.notes)
    sources = {row["name"]: row["source"] for table in report.tables[1:] for row in table.records
               if "source" in row}  # fmt: skip
    assert sources["nodes_per_switch"] == "scontrol show topology"


def test_a_refused_size_is_a_note(slurm: FakeSlurm) -> None:
    slurm.on("sbatch", LARGE + PLANNED)
    report = advice_on(Path("job.yaml"), "./mine.yaml", AdviceOptions(ask=True, gpus=16))
    waits = {row["ranks"]: row["wait_s"] for row in report.tables[0].records}
    assert waits[16] is None
    assert waits[8] is not None
    assert any("When 16 GPUs would start is unknown: Slurm says" in note for note in report.notes)


def test_nothing_is_asked_without_the_option(slurm: FakeSlurm) -> None:
    advice_on(Path("job.yaml"), "./mine.yaml", AdviceOptions(gpus=16))
    assert slurm.calls("sbatch") == []


def test_a_host_without_sbatch_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SpecError, match="sbatch is not on PATH"):
        asked()
