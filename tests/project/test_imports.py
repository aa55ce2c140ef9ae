"""Start-up budgets, as imports and opened data: what a login node pays for a command."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"pandas", "numpy", "torch", "submitit", "matplotlib", "scipy"}
JOB = "examples/digits/job.yaml"
PROBE = """
import sys
data = []
sys.addaudithook(
    lambda event, args: data.append(args[0])
    if event == "open" and "/hpc_train/data/" in str(args[0]) else None
)
from hpc_train.cli.main import main
try:
    main()
finally:
    opened = [name for name in map(str, data) if name.endswith(".yaml")]
    print(*sys.modules, "", *opened, file=sys.stderr, sep=" ")
"""


def printed(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip


@cache
def after(command: str) -> tuple[set[str], set[str]]:
    """Run a command in a fresh interpreter; return the modules imported, and the data opened."""
    # Messages of the command stand above. Jinja decodes a template that is not compiled yet, as
    # with PYTHONDONTWRITEBYTECODE.
    last = printed(PROBE, *command.split()).stderr.splitlines()[-1]
    modules, _, data = last.partition("  ")
    return {*modules.split()} - {"encodings.unicode_escape"}, {Path(x).name for x in data.split()}


pytestmark = pytest.mark.process


def test_help_imports_nothing_of_others_and_few_modules() -> None:
    """Each module is about six calls of stat and open, which a parallel file system answers."""
    modules, data = after("--help")
    assert modules & {*HEAVY, "click", "jinja2", "msgspec", "yaml"} == set()
    bare = printed("import sys; print(*sys.modules)").stdout.split()
    assert len(modules - {*bare}) <= 36
    assert data == set()


@pytest.mark.parametrize(
    "command",
    ["report --help", f"render {JOB} --site local", f"submit --dry-run {JOB} --site local"],
)
def test_no_heavy_library_no_signatures_and_no_other_scheduler(command: str) -> None:
    modules, data = after(command)
    assert modules & HEAVY == set()
    assert "cuda.yaml" not in data
    others = tuple(f"hpc_train.{name}." for name in ("slurm", "pbs", "sagemaker", "hosts.executor"))
    assert [name for name in modules if f"{name}.".startswith(others)] == []
    if command.startswith("render"):
        bare = printed("import sys; print(*sys.modules)").stdout.split()
        assert len(modules - {*bare}) <= 275


def test_signatures_are_read_to_diagnose_and_not_to_collect() -> None:
    assert "cuda.yaml" in after("diagnose examples/logs/gpt-8.log")[1]
    assert after("collect examples/logs/gpt-8.log")[1] == {"formats.yaml", "headings.yaml"}


def test_the_package_loads_its_interface_at_the_first_use() -> None:
    code = (
        "import sys; before = {*sys.modules}; import hpc_train; hpc_train.__version__; "
        "print(*{*sys.modules} - before); "
        "hpc_train.submit, hpc_train.run, hpc_train.study, hpc_train.diagnose; print(*sys.modules)"
    )
    bare, used = printed(code).stdout.splitlines()
    assert {*bare.split()} - {"typing"} == {"hpc_train"}
    assert {*used.split()} & {*HEAVY, "click", "rich", "IPython", "asyncio"} == set()


def test_a_report_of_two_logs_loads_few_modules() -> None:
    modules, _ = after("report examples/logs/gpt-8.log examples/logs/gpt-16.log --gpus 8,16")
    assert sum(f"{name}.".startswith("hpc_train.") for name in modules) <= 90


def test_a_report_as_text_loads_no_figures(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    rows = (f"{n},{n},{100 * n}" for n in (1, 2, 4, 8, 16, 32))
    table.write_text("\n".join(["nodes,gpus,samples_per_second", *rows]) + "\n")
    found, _ = after(f"report {table}")
    assert "hpc_train.scaling.scaling_fits" in found
    assert not found & {"matplotlib", "scipy.optimize", "scipy.stats"}
