"""Patterns in a study: where they are wrong, and how to mend them."""

from pathlib import Path

import pytest

from hpc_train.base.errors import SpecError
from tests.jobs.read_files import load_study

STUDY = """\
name: s
job: {command: [a]}
axes: {tasks_per_node: [1, 2]}
scaling: strong
"""
GOOD = r"took (?P<step_time>\d+) ms"


def load(folder: Path, pattern: str) -> None:
    path = folder / "study.yaml"
    path.write_text(STUDY + pattern)
    load_study(path, [])


def test_one_pattern_or_several(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        STUDY + f"pattern: {{regex: '{GOOD}', scope: global, scale: {{step_time: 0.001}}}}\n"
    )
    (one,) = load_study(path, []).spec.patterns
    assert (one.scope, one.scale) == ("global", {"step_time": 0.001})
    item = f"  - {{regex: '{GOOD}', scope: per_rank}}\n"
    path.write_text(STUDY + "pattern:\n" + item + item)
    assert len(load_study(path, []).spec.patterns) == 2
    path.write_text(STUDY)
    assert load_study(path, []).spec.patterns == ()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("regex: 'took (?P<step_time>'", ["the regex is invalid"]),
        (r"regex: 'took \d+ ms'", ["has no named group for a metric"]),
        (r"regex: 'took (?P<step_tim>\d+) ms'", ["'step_tim'", "did you mean 'step_time'?"]),
        (r"regex: 'took (?P<pressure>\d+) W'", ["'pressure'", "known: "]),
        (r"regex: '(?P<step_time>\d+)'", ["the regex has no text of 4 characters"]),
        (rf"regex: '{GOOD}', literal: ms", ["literal: 'ms'"]),
        (rf"regex: '{GOOD}', units: {{step_time: ms}}", ["step_time is always in s, not ms"]),
        (rf"regex: '{GOOD}', scale: {{step: 2}}", ["no group 'step'", "its metrics: step_time"]),
        (rf"regex: '{GOOD}', scale: {{step_time: 0}}", ["step_time is 0"]),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    tmp_path: Path, fields: str, words: list[str]
) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, f"pattern: {{scope: global, {fields}}}\n")
    assert caught.value.message.startswith(f"{tmp_path}/study.yaml:5: pattern: ")
    assert all(word in caught.value.message for word in words)
