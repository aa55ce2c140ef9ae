"""Every type that reports a problem is a `Finding`, and its JSON keeps its keys."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.model.finding import Finding, LintFinding, has_errors
from tests.records.diagnosis.logs import trace

ROOT = Path(__file__).resolve().parents[2]
# A rule, a hit of it and a signature are where findings come from.
SOURCES = {"RuleHit"}
KEYS = {
    "lint": "file id severity line message advice",
    "diagnose": "id group severity role title cause advice evidence count",
    "doctor": "section severity message advice",
    "site check": "severity place message",
}


def fields(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign)}


def test_what_has_a_severity_and_a_message_is_a_finding() -> None:
    nodes = [
        node
        for path in (ROOT / "hpc_train").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and {"severity", "message"} <= fields(node)
    ]
    assert {node.name for node in nodes} == {"Finding"} | SOURCES


def rows(folder: Path, *words: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "hpc_train", *words, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    found: list[dict[str, object]] = (
        answer["findings"] if "findings" in answer else answer["checks"]["x.yaml"]["complaints"]
    )
    return found


@pytest.mark.parametrize("command", sorted(KEYS))
def test_json_keeps_its_keys_in_their_order(command: str, tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("#!/bin/bash\n#SBATCH --nodse=2\nsrun python train.py\n")
    (tmp_path / "x.log").write_text(trace("KeyError: 'a'"))
    (tmp_path / "x.yaml").write_text("schema: 1\nname: x\nsurely: wrong\n")
    arguments = {"lint": ["x.sh"], "diagnose": ["x.log"], "doctor": [], "site check": ["x.yaml"]}
    found = rows(tmp_path, *command.split(), *arguments[command])
    assert found or command == "doctor"
    assert {" ".join(row) for row in found} <= {KEYS[command]}


def test_errors_are_told_from_warnings() -> None:
    warning = Finding(severity="warning", message="slow")
    error = LintFinding(id="HT101", severity="error", line=1, message="wrong", advice="mend it")
    assert (has_errors([warning]), has_errors([warning, error])) == (False, True)
