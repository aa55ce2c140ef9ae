"""Lines of one's own, from a study file and from the command line."""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

REGEX = r"step (?P<step>\d+) took (?P<step_time>[\d.]+) ms"
JOB = "{command: [bash, -c, 'echo step 1 took 250.0 ms'], launcher: single}"


def records(text: str) -> list[tuple[str, float, int | None]]:
    return [
        (found["parser"], found["value"], found["step"])
        for found in map(json.loads, text.splitlines())
        if found["metric"] == "step_time"
    ]


@pytest.mark.process
def test_a_study_reads_its_own_lines(hpctrain: Hpctrain) -> None:
    Path("study.yaml").write_text(
        f"name: s\njob: {JOB}\naxes: {{env.X: [1]}}\nscaling: strong\nrepetitions: 1\n"
        f"pattern: {{regex: '{REGEX}', scope: per_rank, scale: {{step_time: 0.001}}}}\n"
    )
    done = hpctrain("submit", "study.yaml", "--wait")
    assert done.returncode == 0, done.stderr
    assert records(hpctrain("collect", "s", "--json").stdout) == [("pattern", 0.25, 1)]
    assert records(hpctrain("collect", "s", "--json", "--format", "events").stdout) == []
    (kept,) = Path("results").rglob("records.jsonl")
    assert records(kept.read_text()) == [("pattern", 0.25, 1)]


LINES = 'for i in $(seq 20); do echo "<$i> cost $((50 + i % 2)).5 ms, speed 1,23$((i % 2))"; done'


def study(name: str, command: str, more: str = "") -> None:
    """Write a study of two sizes that prints lines which no parser reads."""
    job = {"command": ["bash", "-c", command], "launcher": "spawn"}
    Path("study.yaml").write_text(
        f"name: {name}\njob: {json.dumps(job)}\naxes: {{tasks_per_node: [1, 2]}}\nscaling: weak\n"
        f"repetitions: 1\nwarmup: {{steps: 2}}\n{more}"
    )


@pytest.mark.process
def test_a_run_that_states_nothing_gets_a_pattern_that_reads_it(hpctrain: Hpctrain) -> None:
    study("s", LINES)
    done = hpctrain("submit", "study.yaml", "--wait")
    assert done.returncode == 0, done.stderr
    assert hpctrain("report", "s").returncode == 3
    for told in (done, hpctrain("status", "s")):
        assert "none of its lines states a time or a rate that hpctrain reads" in told.stderr
        options = [shlex.split(line.partition(": --")[2]) for line in told.stderr.splitlines()]
        found = [words[1] for words in options if words[:1] == ["pattern"]]
        assert [text.partition("=")[0] for text in found] == ["step_time[ms]", "samples_per_second"]
    collected = hpctrain("collect", "s").stderr
    assert shlex.split(collected.splitlines()[-1].partition(": --")[2])[1:2] == found[:1]
    words = [word for text in found for word in ("--pattern", text)]
    report = hpctrain("report", "s", *words, "--scope", "global", "-f", "json")
    assert report.returncode == 0, report.stderr
    (one, two) = json.loads(report.stdout)["rows"]
    assert one["step_time_s"] == pytest.approx(0.051, rel=0.02)
    assert two["throughput"]["value"] == pytest.approx(1230.5, rel=0.01)
    # The key of the study file, as it was printed, reads the next runs.
    key = done.stderr.partition("in a study file, ")[2].splitlines()[0]
    study("t", LINES, key.replace("per_rank", "global"))
    done = hpctrain("submit", "study.yaml", "--wait")
    assert "none of its lines" not in done.stderr
    assert hpctrain("report", "t").returncode == 0


@pytest.mark.process
def test_a_training_that_states_no_time_is_compared_by_its_duration(hpctrain: Hpctrain) -> None:
    study("s", "sleep 0.3; echo 'Train Epoch: 1 [0/600 (0%)]  Loss: 0.5'")
    done = hpctrain("submit", "study.yaml", "--wait")
    assert "\nassumed: no line states a time or a rate, so the time to train is the" in done.stderr
    report = hpctrain("report", "s", "-f", "json")
    assert report.returncode == 0, report.stderr
    found = json.loads(report.stdout)
    assert all(row["time_to_train_s"] >= 0.3 for row in found["rows"])
    assert any(line.startswith("Caveats: no line states a time") for line in found["summary"])


def test_a_foreign_log_gets_a_pattern_that_reads_it(hpctrain: Hpctrain) -> None:
    Path("a.log").write_text("".join(f"<{n}> cost 50 ms\n" for n in range(30)))
    for command in ("collect", "report"):
        refused = hpctrain(command, "a.log")
        (hint,) = (line for line in refused.stderr.splitlines() if "--pattern" in line)
        words = shlex.split(hint.partition("--pattern ")[2].partition(";")[0])
        assert hpctrain(command, "a.log", "--pattern", *words).returncode == 0
