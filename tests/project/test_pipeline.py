"""Each module of `pipeline` joins two or more stages."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "hpc_train"
STAGES = {
    "advice", "sites", "specs", "imports", "plans", "scripts", "lint", "submissions", "runs",
    "records", "tables", "reports", "lab", "probe",
}  # fmt: skip
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in (PACKAGE / "pipeline").rglob("[!_]*.py")
)


def is_for_types(node: ast.AST) -> bool:
    """Whether a node is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports(node: ast.AST) -> set[str]:
    """Return the modules that are imported when the code runs."""
    if is_for_types(node):
        return set()
    found = set()
    if isinstance(node, ast.ImportFrom) and node.module:
        found = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    for child in ast.iter_child_nodes(node):
        found |= imports(child)
    return found


@cache
def stages(module: str, above: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the stages that a module imports, itself or through other modules of `pipeline`."""
    path = PACKAGE.parent / (module.replace(".", "/") + ".py")
    found: set[str] = set()
    for name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        parts = name.split(".")
        if parts[0] == "hpc_train" and len(parts) > 1 and parts[1] in STAGES:
            found.add(parts[1])
        if name in MODULES and name not in above:
            found |= stages(name, (*above, module))
    return frozenset(found)


def test_the_modules_are_found() -> None:
    assert "hpc_train.pipeline.submit" in MODULES
    assert stages("hpc_train.pipeline.submit") >= {"plans", "scripts", "runs", "submissions"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_joins_stages(module: str) -> None:
    assert len(stages(module)) > 1, f"{module} belongs to the stage {set(stages(module))}"
