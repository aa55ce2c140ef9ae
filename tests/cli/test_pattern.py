"""Lines of one's own, from a study file and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Hpctrain

REGEX = r"step (?P<step>\d+) took (?P<step_time>[\d.]+) ms"
JOB = "{command: [bash, -c, 'echo step 1 took 250.0 ms'], launcher: single}"


def records(text: str) -> list[tuple[str, float, int | None]]:
    return [
        (found["parser"], found["value"], found["step"])
        for found in map(json.loads, text.splitlines())
        if found["metric"] == "step_time"
    ]


def test_a_study_reads_its_own_lines(hpctrain: Hpctrain) -> None:
    Path("study.yaml").write_text(
        f"name: s\njob: {JOB}\naxes: {{env.X: [1]}}\nscaling: strong\nrepetitions: 1\n"
        f"pattern: {{regex: '{REGEX}', scope: per_rank, scale: {{step_time: 0.001}}}}\n"
    )
    done = hpctrain("submit", "study.yaml", "--wait")
    assert done.returncode == 0, done.stderr
    assert records(hpctrain("collect", "s", "--json").stdout) == [("pattern", 0.25, 1)]
    assert records(hpctrain("collect", "s", "--json", "--parser", "events").stdout) == []
    (kept,) = Path("results").rglob("records.jsonl")
    assert records(kept.read_text()) == [("pattern", 0.25, 1)]


def test_any_log_with_a_regex(hpctrain: Hpctrain) -> None:
    Path("a.log").write_text("step 3 took 4.5 ms\n")
    done = hpctrain("collect", "a.log", "--json", "--pattern", REGEX)
    assert records(done.stdout) == [("pattern", 4.5, 3)]


def test_a_wrong_regex_is_the_users_mistake(hpctrain: Hpctrain) -> None:
    Path("a.log").write_text("x\n")
    done = hpctrain("collect", "a.log", "--pattern", "took (?P<step_tim>.)")
    assert done.returncode == 2
    assert "--pattern: the group 'step_tim'" in done.stderr
    assert "did you mean 'step_time'?" in done.stderr
