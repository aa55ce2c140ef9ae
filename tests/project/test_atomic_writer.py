"""One module of the package writes files atomically; the others call it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "hpc_train"
WRITER = PACKAGE / "atomicfile.py"
# The folder of a run gets its name when it is complete, and another one before it is removed.
FOLDERS = {
    "runs/run_folders.py: fresh.path.rename(final.path)",
    "runs/run_folders.py: folder.path.rename(gone)",
    # A checkpoint is a folder too, whose files torch writes.
    "workload/checkpoint_files.py: os.fsync(descriptor)",
    "workload/checkpoint.py: folder.rename(aside)",
    "workload/checkpoint_writing.py: final.rename(before)",
    "workload/checkpoint_writing.py: before.rename(before.with_suffix(''))",
    "workload/checkpoint_writing.py: folder.new.rename(final)",
}
OF_SYSTEM = {"fsync", "fdatasync", "mkstemp", "mktemp", "NamedTemporaryFile", "hardlink_to", "link"}


def is_atomic_step(call: ast.Call) -> bool:
    """Whether a call makes a temporary file, flushes it or gives it its name."""
    name = ast.unparse(call.func)
    module, _, last = name.rpartition(".")
    if module == "os" and last in ("replace", "rename", "renames"):
        return True
    # `Path.replace` and `Path.rename` have one argument; those of texts and frames have others.
    renames = last in ("replace", "rename") and len(call.args) == 1 and not call.keywords
    return last in OF_SYSTEM or renames


def steps(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and is_atomic_step(node):
            yield ast.unparse(node)


def test_one_module_writes_atomically() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {step}"
        for path in PACKAGE.rglob("*.py")
        if path != WRITER
        for step in steps(path.read_text(encoding="utf-8"))
    }
    assert found == FOLDERS


@pytest.mark.parametrize(
    "code",
    [
        "os.replace(a, b)",
        "tempfile.mkstemp()",
        "fresh.replace(path)",
        "os.fsync(1)",
        "os.link(a, b)",
    ],
)
def test_each_way_of_writing_is_seen(code: str) -> None:
    assert list(steps(code)) == [code]


def test_the_writer_itself_is_seen() -> None:
    found = set(steps(WRITER.read_text(encoding="utf-8")))
    assert found == {"os.fsync(descriptor)", "fresh.replace(path)", "os.link(fresh, path)"}
