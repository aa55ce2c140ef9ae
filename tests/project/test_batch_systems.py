"""The name of a scheduler and the variables of its jobs stand in its own folder and template."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.model.batch_system import LOCAL
from hpc_train.registry import BUILT_IN, find_batch_system

ROOT = Path(__file__).resolve().parents[2]
NAMES = frozenset(BUILT_IN["batch_systems"])
# Requeue and nested allocations are features of Slurm, with templates of their own.
OF_SLURM = {"_requeue.sh.j2", "nested.sbatch.j2"}
# The variable that tells srun to pass all variables on, where srun starts the ranks.
EXPORT = "SLURM_EXPORT_ENV"


def compared(path: Path) -> Iterator[str]:
    """Yield the comparisons of a module with the name of a scheduler."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Compare):
            continue
        words = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
        text = ast.unparse(node)
        if words & NAMES and re.search(r"scheduler|executor", text):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {text}"


def test_no_module_compares_a_scheduler_with_a_name() -> None:
    modules = sorted((ROOT / "hpc_train").rglob("*.py"))
    assert [text for path in modules for text in compared(path)] == []


def test_no_template_compares_a_scheduler_with_a_name() -> None:
    found = [
        f"{path.name}: {code}"
        for path in sorted((ROOT / "templates").glob("*.j2"))
        for code in re.findall(r"{[{%].*?[%}]}", path.read_text(encoding="utf-8"))
        if re.search(r"scheduler", code) or re.search(rf"[\"']({'|'.join(NAMES)})[\"']", code)
    ]
    assert found == []


def test_shared_templates_and_plans_name_no_variable_of_slurm() -> None:
    shared = [
        *(path for path in (ROOT / "templates").glob("*.j2") if path.name not in OF_SLURM),
        *(ROOT / "hpc_train" / "plans").rglob("*.py"),
    ]
    found = {
        path.name: names
        for path in sorted(shared)
        if (names := set(re.findall(r"SLURM_\w+", path.read_text(encoding="utf-8"))) - {EXPORT})
    }
    # The variables of the ranks that srun starts.
    assert found == {
        "srun.py": {"SLURM_LOCALID", "SLURM_NTASKS", "SLURM_PROCID"},
    }


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_has_an_executor_and_a_template(name: str) -> None:
    batch = find_batch_system(name)
    assert batch.name == name
    assert name in BUILT_IN["executors"]
    assert (ROOT / "templates" / batch.template).is_file()


def test_an_executor_of_another_package_has_what_this_machine_has() -> None:
    found = find_batch_system("another")
    assert (found.template, found.this_machine, found.prefix) == (LOCAL.template, False, "")
