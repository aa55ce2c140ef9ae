"""What a launcher says of itself agrees with its argv, and stands nowhere else."""

import ast
import re
from pathlib import Path

from hpc_train.base.registry import BUILT_IN

ROOT = Path(__file__).parents[3]
NAMES = tuple(BUILT_IN["launchers"])
# What a launcher passes on its way from a job to a run.
# What lists launchers by scheduler, and strategies, of which one has the name of a launcher.
TABLES = ("batch_system.py", "strategies.py")
STAGES = ("plans", "scripts", "sites", "jobs", "submissions", "runs", "cli")


def test_no_stage_knows_a_launcher_by_name() -> None:
    """A new launcher needs no change of them; a scheduler may state which ones cannot work."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
        for stage in STAGES
        for path in (ROOT / "hpc_train" / stage).rglob("*.py")
        if path.parent.name != "launchers" and path.name not in TABLES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in NAMES
    ]
    assert found == []


def test_no_template_knows_a_launcher_by_name() -> None:
    names = "|".join(NAMES)
    found = [
        f"{path.name}: {code}"
        for path in sorted((ROOT / "templates").glob("*.j2"))
        for code in re.findall(r"{[{%].*?[%}]}", path.read_text(encoding="utf-8"))
        if re.search(rf"[\"']({names})[\"']", code)
    ]
    assert found == []
