"""Start-up budgets, as imports: what a login node pays for `--help` and `render`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"pandas", "numpy", "torch", "submitit", "matplotlib", "scipy"}
PROBE = """
import sys
from hpc_train.cli.main import main
try:
    main()
except SystemExit as stop:
    print(*sys.modules, file=sys.stderr)
    raise SystemExit(stop.code)
print(*sys.modules, file=sys.stderr)
"""


def modules_after(*arguments: str) -> set[str]:
    """Run the command in a fresh interpreter; return the modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Messages of the command stand above. Jinja decodes a template that is not compiled yet, as
    # with PYTHONDONTWRITEBYTECODE.
    return {*done.stderr.splitlines()[-1].split()} - {"encodings.unicode_escape"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("report", "--help"),
        ("render", "examples/digits/job.yaml"),
        ("submit", "--dry-run", "examples/digits/study.yaml"),
    ],
)
def test_heavy_libraries_are_not_imported(arguments: tuple[str, ...]) -> None:
    assert modules_after(*arguments) & HEAVY == set()


def test_the_package_loads_its_interface_at_the_first_use() -> None:
    code = (
        "import sys, typing; before = {*sys.modules}; import hpc_train; hpc_train.__version__; "
        "print(*{*sys.modules} - before)"
    )
    bare = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {*bare.stdout.split()} == {"hpc_train", "hpc_train.version"}


@pytest.mark.parametrize("name", ["submit", "run", "study", "diagnose"])
def test_submitting_from_python_loads_no_heavy_library(name: str) -> None:
    code = f"import sys, hpc_train; hpc_train.{name}; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {*found.stdout.split()} & {*HEAVY, "click", "rich", "IPython", "asyncio"} == set()


def test_help_imports_nothing_of_others() -> None:
    assert modules_after("--help") & {"click", "jinja2", "msgspec", "yaml"} == set()


@pytest.mark.parametrize(
    ("arguments", "most"),
    [(("--help",), 36), (("render", "examples/digits/job.yaml"), 275)],
)
def test_modules_imported(arguments: tuple[str, ...], most: int) -> None:
    """Each module is about six calls of stat and open, which a parallel file system answers."""
    # The first command examines the host, the next ones read what it kept.
    modules_after(*arguments)
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(modules_after(*arguments) - set(bare.stdout.split())) <= most


def test_a_script_needs_no_executor() -> None:
    loaded = modules_after("render", "examples/digits/job.yaml", "--site", "local")
    assert not {name for name in loaded if name.startswith(("hpc_train.submissions", "boto"))}


def test_a_submission_to_one_scheduler_loads_no_other() -> None:
    words = ("submit", "--dry-run", "examples/digits/job.yaml", "--site", "local")
    loaded = {name for name in modules_after(*words) if name.startswith("hpc_train.submissions.")}
    assert not [name for name in loaded if name.split(".")[2] in ("slurm", "pbs", "hosts")]
    assert not [name for name in loaded if name.split(".")[2] == "sagemaker"]


OPENED = """
import sys
data = []
sys.addaudithook(
    lambda event, args: data.append(args[0])
    if event == "open" and "/hpc_train/data/" in str(args[0]) else None
)
from hpc_train.cli.main import main
try:
    main()
except SystemExit as stop:
    print(*data, sep="\\n", file=sys.stderr)
"""


def data_after(*arguments: str) -> set[str]:
    """Run the command in a fresh interpreter; return the package's data that it opened."""
    done = subprocess.run(
        [sys.executable, "-c", OPENED, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {Path(name).name for name in done.stderr.split() if name.endswith(".yaml")}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("diagnose", "--help"),
        ("render", "examples/digits/job.yaml"),
        ("collect", "docs/logs.md"),
    ],
)
def test_other_commands_read_no_signatures(arguments: tuple[str, ...]) -> None:
    assert "cuda.yaml" in data_after("diagnose", "docs/logs.md")
    assert data_after(*arguments) == set()


def test_event_emitter_needs_the_standard_library_only() -> None:
    source = ROOT / "hpc_train" / "workload" / "emit.py"
    imported: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    assert imported - set(sys.stdlib_module_names) == set()


def test_a_report_as_text_loads_neither_figures_nor_bundles(tmp_path: Path) -> None:
    found = modules_after("report", str(sized_table(tmp_path, 1, 2, 4, 8, 16, 32)))
    assert "hpc_train.tables.least_squares" in found
    unused = {"matplotlib", "scipy.optimize", "scipy.stats", "hpc_train.pipeline.write_bundle"}
    assert not found & {*unused, "hpc_train.pipeline.run_details"}


def sized_table(folder: Path, *nodes: int) -> Path:
    table = folder / "runs.csv"
    rows = (f"{n},{n},{100 * n}" for n in nodes)
    table.write_text("\n".join(["nodes,gpus,samples_per_second", *rows]) + "\n")
    return table
