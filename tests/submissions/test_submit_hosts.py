"""Hosts that cannot be used are refused before anything is printed, written or sent."""

import json
import os
from pathlib import Path

import pytest

from tests.command_line import run_command
from tests.sites.test_host_list import SITE, write

JOB = {"name": "j", "command": ["bash", "-c", "true"], "launcher": "spawn"}
PROBLEM = "ssh: connect to host {} port 22: Connection refused"


@pytest.fixture(autouse=True)
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program named ssh on PATH, which no host answers."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    said = PROBLEM.format("${@: -2:1}")
    program.write_text(f'#!/bin/bash\necho "{said}" >&2; exit 255\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)


def refused(*words: str) -> str:
    done = run_command(words, dict(os.environ))
    assert done.returncode == 2, done.stderr
    assert f"    gpu2: {PROBLEM.format('gpu2')}" in done.stderr
    assert "ssh gpu2 true   shows what ssh says" in done.stderr
    assert "cost" not in done.stderr
    assert not Path("results").exists()
    return done.stdout


@pytest.mark.process
@pytest.mark.parametrize("shared", ["", "shared: true\n"])
def test_a_job_is_refused_before_its_cost_is_printed(tmp_path: Path, shared: str) -> None:
    site = write(tmp_path, SITE + shared)
    Path("j.yaml").write_text(json.dumps({**JOB, "resources": {"nodes": 2}}))
    assert refused("submit", "j.yaml", "--site", site) == ""
    assert refused("submit", "j.yaml", "--site", site, "--dry-run") == ""
