"""What the code of the package keeps to, and no tool checks: who does what."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hpc_train.base.registry import BUILT_IN

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "hpc_train"

WRITER = "base/files.py"
# The folder of a run gets its name when it is complete, and another one before it is removed.
FOLDERS = {
    "runs/run_folders.py: fresh.path.rename(final.path)",
    "runs/run_folders.py: folder.path.rename(gone)",
    # A checkpoint is a folder too, whose files torch writes.
    "trainer/checkpoint.py: os.fsync(descriptor)",
    "trainer/checkpoint.py: folder.rename(aside)",
    "trainer/checkpoint.py: final.rename(before)",
    "trainer/checkpoint.py: before.rename(before.with_suffix(''))",
    "trainer/checkpoint.py: new.rename(final)",
}
OF_SYSTEM = {"fsync", "fdatasync", "mkstemp", "mktemp", "NamedTemporaryFile", "hardlink_to", "link"}

NAMES = frozenset(BUILT_IN["batch_systems"])


@cache
def sources() -> dict[str, str]:
    return {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def expressions(worth: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield all nodes of the modules in which a regular expression is found."""
    for where, text in sources().items():
        if re.search(worth, text):
            yield from ((where, node) for node in ast.walk(ast.parse(text)))


def atomic_steps() -> Iterator[str]:
    """Yield the calls that make a temporary file, flush it or give it its name."""
    for where, node in expressions(rf"\b({'|'.join(OF_SYSTEM)}|rename|renames|replace)\("):
        if not isinstance(node, ast.Call):
            continue
        module, _, last = ast.unparse(node.func).rpartition(".")
        # `Path.replace` and `Path.rename` have one argument; those of texts and frames have others.
        renames = last in ("replace", "rename") and len(node.args) == 1 and not node.keywords
        of_os = module == "os" and last in ("replace", "rename", "renames")
        if of_os or renames or last in OF_SYSTEM:
            yield f"{where}: {ast.unparse(node)}"


def test_one_module_writes_atomically() -> None:
    found = {step for step in atomic_steps() if not step.startswith(WRITER)}
    assert found == FOLDERS


def test_no_module_compares_a_scheduler_with_a_name() -> None:
    found = []
    for where, node in expressions(rf"[\"']({'|'.join(NAMES)})[\"']"):
        if isinstance(node, ast.Compare):
            words = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
            text = ast.unparse(node)
            if words & NAMES and re.search(r"scheduler|executor", text):
                found.append(f"{where}:{node.lineno} {text}")
    assert found == []
