"""`--pattern`: the regex alone, or a metric, its unit and a regex with one group."""

import pytest

from hpc_train.base.errors import ReportError, SpecError
from hpc_train.logs.formats.pattern import own_patterns
from hpc_train.machine.check_site import key_rows
from hpc_train.reports.write_report import target_of


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


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("accuracy=93", "did you mean 0.93"), ("accuracy=0", "above 0"),
        ("acuracy=0.9", "did you mean 'accuracy'"), ("loss=low", "neither loss=NUMBER"),
        ("loss=nan", "neither loss=NUMBER"), ("accuracy", "neither loss=NUMBER"),
    ],
)  # fmt: skip
def test_what_no_training_can_reach_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ReportError, match=wrong) as refused:
        target_of(text)
    assert "--target accuracy=0.93" in (refused.value.hint or "")


def test_every_key_is_explained() -> None:
    rows = {key: (allowed, default, meaning) for key, allowed, default, meaning in key_rows()}
    assert len(rows) > 150
    assert [key for key, (*_, meaning) in rows.items() if not meaning.strip()] == []
    assert rows["pbs.project"] == ("-A, -P", "-A", "Option of the project.")
    assert rows["hosts[].gpus"][0] == "0 to 64"
