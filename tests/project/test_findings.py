"""Every type that reports a problem is a `Finding`, and its JSON keeps its keys."""

import json
import os
from pathlib import Path

import pytest

from tests.command_line import run_command
from tests.diagnosis.test_diagnoses import trace

KEYS = {
    "lint": "file id severity line message advice",
    "diagnose": "id group severity role title cause advice evidence count",
    "doctor": "section severity message advice",
    "site check": "severity place message",
}


def rows(folder: Path, *words: str) -> list[dict[str, object]]:
    done = run_command([*words, "--json"], dict(os.environ), folder)
    answer = json.loads(done.stdout)
    found: list[dict[str, object]] = (
        answer["findings"] if "findings" in answer else answer["checks"]["x.yaml"]["complaints"]
    )
    return found


@pytest.mark.process
@pytest.mark.parametrize("command", sorted(KEYS))
def test_json_keeps_its_keys_in_their_order(command: str, tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("#!/bin/bash\n#SBATCH --nodse=2\nsrun python train.py\n")
    (tmp_path / "x.log").write_text(trace("KeyError: 'a'"))
    (tmp_path / "x.yaml").write_text("schema: 1\nname: x\nsurely: wrong\n")
    arguments = {"lint": ["x.sh"], "diagnose": ["x.log"], "doctor": [], "site check": ["x.yaml"]}
    found = rows(tmp_path, *command.split(), *arguments[command])
    assert found or command == "doctor"
    assert {" ".join(row) for row in found} <= {KEYS[command]}
