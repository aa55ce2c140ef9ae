"""The commands of the core, and those that need an extra."""

from pathlib import Path
from typing import NamedTuple

from hpc_train import __version__ as VERSION

ROOT = Path(__file__).resolve().parents[2]
JOB = """\
name: {name}
command: [python, -c, "{code}"]
launcher: single
"""
STUDY = """\
name: grid
scaling: weak
job:
  command: [python, -c, "print('hello')"]
  launcher: spawn
axes:
  tasks_per_node: [1, 2]
repetitions: 3
"""
FAILED = "RuntimeError: CUDA error: invalid device ordinal\n"
NCCL = "n1:7:7 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
STEPS = """\
 iteration       10/     100 | elapsed time per iteration (ms): 500.0 | global batch size:   128 |
 iteration       20/     100 | elapsed time per iteration (ms): 510.0 | global batch size:   128 |
"""


class Case(NamedTuple):
    """A command, the exit codes of which any is right, and a part of its output."""

    words: str
    text: str
    codes: tuple[int, ...] = (0,)


CORE = [
    Case("render job.yaml -o script.sh", ""),
    Case("submit job.yaml --wait", "COMPLETED"),
    Case("submit broken.yaml --wait", "FAILED", (1,)),
    Case("--help", "Usage: hpctrain"),
    Case("--version", f"hpctrain, version {VERSION}"),
    Case("site list", "local"),
    Case("site show local", "confidence"),
    Case("site show local --job", "command"),
    Case("site check local", "0 errors"),
    Case("site schema", "json-schema.org"),
    Case("render job.yaml", "#!/"),
    Case("render grid.yaml", "#!/"),
    Case("explain job.yaml", "WORLD_SIZE"),
    Case("lint script.sh", "nothing found"),
    Case("lint --list", "HT001"),
    Case("submit grid.yaml --dry-run", "3 repetitions resolve about"),
    Case("status", "hello"),
    Case("status --json", '"COMPLETED"'),
    Case("logs hello", "hello from the job"),
    Case("retry broken --wait", "FAILED", (1,)),
    Case("cancel hello", "nothing to cancel", (2,)),
    Case("collect steps.log", "megatron,step_time,"),
    Case("collect steps.log --json", '"metric":"step_time"'),
    Case("collect steps.log.zst", "megatron,step_time,"),
    Case("collect steps.log -o steps.csv", "4 records of 1 run"),
    Case("collect steps.log -o steps.jsonl", "4 records of 1 run"),
    Case("collect hello", "no record", (0,)),
    Case("collect --list", "megatron"),
    Case("diagnose job.out", "FAILED  A process selected a GPU that is not visible to it"),
    Case("diagnose broken", "FAILED"),
    Case("diagnose --list", "cuda_oom"),
    # 1: a problem of the machine that runs this test.
    Case("doctor", "containers", (0, 1)),
    Case("doctor --json", '"hardware"', (0, 1)),
    Case("completion bash", "_hpctrain_completion"),
]
REPORT = "needs pandas, scipy and matplotlib; install them: "
PARQUET = "Parquet needs pyarrow and pandas; install them: "
NEED_AN_EXTRA = [
    Case("report steps.log", f"hpctrain: hpctrain report {REPORT}"),
    Case("report nothing-of-this-name", f"hpctrain: hpctrain report {REPORT}"),
    Case("compare steps.log steps.log", f"hpctrain: hpctrain compare {REPORT}"),
    Case("collect steps.log -o steps.parquet", f"hpctrain: {PARQUET}"),
]


def write_files(folder: Path) -> None:
    """Write the files that the commands read."""
    import zstandard

    (folder / "job.yaml").write_text(JOB.format(name="hello", code="print('hello from the job')"))
    (folder / "broken.yaml").write_text(JOB.format(name="broken", code="raise SystemExit(3)"))
    (folder / "grid.yaml").write_text(STUDY)
    (folder / "job.out").write_text(NCCL + FAILED)
    (folder / "steps.log").write_text(STEPS)
    (folder / "steps.log.zst").write_bytes(zstandard.compress(STEPS.encode()))
