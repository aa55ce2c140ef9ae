r"""`--pattern`: the regex alone, or a metric, its unit and a regex with one group."""

from __future__ import annotations

import pytest

from hpc_train.errors import SpecError
from hpc_train.specs.option_pattern import own_patterns


@pytest.mark.parametrize(
    ("text", "regex", "scale"),
    [
        (r"took (?P<step_time>[\d.]+) s", r"took (?P<step_time>[\d.]+) s", {}),
        (r"loss=(?P<loss>[\d.]+)", r"loss=(?P<loss>[\d.]+)", {}),
        (r"step_time=took ([\d.]+) s", r"took (?P<step_time>[\d.]+) s", {}),
        (r"step_time[ms]=took ([\d.]+)", r"took (?P<step_time>[\d.]+)", {"step_time": 1e-3}),
        (r"step_time [min]=took ([\d.]+)", r"took (?P<step_time>[\d.]+)", {"step_time": 60.0}),
        (r"step_time[s]=took ([\d.]+)", r"took (?P<step_time>[\d.]+)", {}),
        (r"accuracy[%]=top1: ([\d.]+)", r"top1: (?P<accuracy>[\d.]+)", {"accuracy": 0.01}),
        (r"loss=step (?P<step>\d+) of (\d+)", r"step (?P<step>\d+) of (?P<loss>\d+)", {}),
        (r"loss=\(loss [(] (?:is )([^)]+)", r"\(loss [(] (?:is )(?P<loss>[^)]+)", {}),
        (r"loss=loss []()[]([\d.]+)", r"loss []()[](?P<loss>[\d.]+)", {}),
    ],
)
def test_forms(text: str, regex: str, scale: dict[str, float]) -> None:
    (pattern,) = own_patterns([text], "global")
    assert (pattern.regex, pattern.scope) == (regex, "global")
    assert pattern.scale == pytest.approx(scale)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r"step_tiem=took ([\d.]+)", "'step_tiem' is not a metric; did you mean 'step_time'"),
        (r"step_time[kg]=took ([\d.]+)", "step_time is in s, not in kg"),
        (r"step_time=took [\d.]+", "step_time: the regex has 0 groups without a name"),
        (r"step_time=(took) ([\d.]+)", "step_time: the regex has 2 groups without a name"),
        (r"step_time=took ([\d.+", "the regex has 0 groups|the regex is invalid"),
        (r"step_time=([\d.]+)", "no text of 4 characters"),
        ("", "the regex has no named group"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=rf"^--pattern: .*(?:{message})"):
        own_patterns([text], "per_rank")
