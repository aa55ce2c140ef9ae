"""The flags of a run, and the reason why a run has no result."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.scaling.measurements import LOSS_LOST, Flag, FlagCode, warmup_words
from hpc_train.scaling.runs import run_frame
from tests.scaling.studies import NO_WARMUP, expected, foreign, rate, record, steps, study


def flags(*records: Record, gpus: int = 1) -> list[str]:
    """Return the flags of run a; run b, with the same records, must have the same."""
    runs = [expected("a", gpus=gpus), expected("b", gpus=gpus), expected("c", gpus=gpus)]
    both = [of_run(one, name) for name in "ba" for one in records]
    frame = run_frame(study(runs), [*both, *rate("c", 5)])
    assert frame["flags"].tolist()[0] == frame["flags"].tolist()[1]
    assert frame["flags"].tolist()[2] == ()
    return [str(flag) for flag in frame["flags"].tolist()[0]]


def of_run(one: Record, name: str) -> Record:
    return replace(one, run=name)


@pytest.mark.parametrize(
    ("number", "found"),
    [(0, []), (1, ["short: 1 steps"]), (19, ["short: 19 steps"]), (20, [])],
)
def test_a_run_with_fewer_than_20_measured_steps_is_short(number: int, found: list[str]) -> None:
    assert flags(*steps("a", [[1.0] * number]), *rate("a", 8)) == found


def test_steps_of_only_some_ranks_are_flagged() -> None:
    three = steps("a", [[1.0] * 20] * 3)
    assert flags(*three, *rate("a", 8), gpus=4) == ["ranks: steps of 3 of 4 ranks"]
    assert flags(*three, gpus=3) == []
    whole = [record("a", "step_time", 1.0, step=step) for step in range(1, 21)]
    assert flags(*whole, *rate("a", 8), gpus=4) == []


@pytest.mark.parametrize(
    ("values", "fields", "found"),
    [
        ([8, 8], {}, []),
        ([8, 16, 8], {}, ["varies: global_batch_size 8, 16; last taken"]),
        ([8, 16], {"step": 1}, []),
    ],
)
def test_a_metric_of_one_value_may_not_change(
    values: Sequence[float], fields: dict[str, Any], found: list[str]
) -> None:
    batches = [
        record("a", "global_batch_size", value, line=line, **fields)
        for line, value in enumerate(values, start=1)
    ]
    assert flags(*batches, record("a", "samples_per_second", 8, line=9)) == found


def test_rates_vary_too_but_accuracies_losses_and_values_of_ranks_do_not() -> None:
    def two(metric: str, **fields: Any) -> list[Record]:
        return [
            record("a", metric, value, line=line, **fields)
            for line, value in enumerate((0.5, 0.25), start=1)
        ]

    assert flags(*two("samples_per_second")) == ["varies: samples_per_second 0.5, 0.25; last taken"]
    assert flags(*two("accuracy"), *rate("a", 8)) == []
    assert flags(*two("loss"), *rate("a", 8)) == []
    ranks = [record("a", "samples_per_second", n, scope="per_rank", rank=n) for n in (1, 2)]
    assert flags(*ranks, gpus=2) == []


def lost(source: str, line: int, what: str = "loss") -> Record:
    return record("a", "not_finite", 1, variant=what, source=source, line=line)


def loss(source: str, line: int, variant: str = "") -> Record:
    return record("a", "loss", 2.5, variant=variant, source=source, line=line)


@pytest.mark.parametrize(
    ("records", "is_lost"),
    [
        ([lost("x", 1)], True),
        ([loss("x", 1), lost("x", 2)], True),
        ([lost("x", 1), loss("x", 2)], False),
        ([lost("x", 1), loss("x", 2, "eval")], True),
        ([lost("x", 1, "grad_norm")], False),
        ([lost("x", 1), loss("y", 2)], True),
        ([loss("x", 1)], False),
    ],
)
def test_a_run_whose_last_loss_is_not_finite_lost_it(
    records: list[Record], *, is_lost: bool
) -> None:
    assert (str(LOSS_LOST) in flags(*records, *rate("a", 8))) is is_lost


def problem(*records: Record, gpus: int = 1, warmup: Warmup = NO_WARMUP) -> str:
    own = study([expected("a", gpus=gpus), expected("b")], warmup=warmup, scaling="strong")
    frame = run_frame(own, [*records, *rate("b", 5)])
    assert (frame["state"].tolist()[0], frame["problem"].tolist()[1]) == ("UNPARSED", "")
    text: str = frame["problem"].tolist()[0]
    return text


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([], "no line with a time or rate that is known; hpctrain help my-report-is-empty"),
        (
            [record("a", "loss", 1), record("a", "accuracy", 0.5)],
            "the log has loss, accuracy, but no time or rate of training",
        ),
        (
            [record("a", "samples_per_second", 5, scope="per_rank", rank=0)],
            "samples_per_second of 1 of several ranks only, or not positive",
        ),
        (steps("a", [[0.0] * 30]), "step times are not positive"),
    ],
)
def test_why_a_run_has_no_result(records: list[Record], text: str) -> None:
    assert problem(*records, gpus=2).startswith(text)


def test_a_rate_per_gpu_needs_the_number_of_gpus() -> None:
    own = record("a", "tokens_per_second", 5, scope="per_gpu")
    frame = run_frame(study([foreign("a")]), [own])
    assert (
        frame["problem"]
        .tolist()[0]
        .startswith("tokens_per_second is per GPU, and no line says of how many")
    )


def test_a_run_within_its_warm_up_has_no_measured_step() -> None:
    found = problem(*steps("a", [[1.0] * 5]), warmup=Warmup(steps=10, seconds=60))
    assert found == (
        "no measured step: 5 in the log, warm-up 10 steps and 60 s; lower warmup.steps or run "
        "longer"
    )
    alone = run_frame(study([foreign("a")], warmup=Warmup(steps=10)), steps("a", [[1.0] * 5]))
    assert alone["problem"].tolist()[0].endswith("warm-up 10 steps; run longer")
    assert [warmup_words(Warmup(steps=number)) for number in (0, 1, 2)] == [
        "0 steps", "1 step", "2 steps",
    ]  # fmt: skip


def test_the_number_of_restarts_is_flagged() -> None:
    for number, text in ((0, None), (1, "restarted once"), (2, "restarted 2 times")):
        frame = run_frame(study([replace(expected("a"), restarts=number)]), rate("a", 8))
        assert frame["flags"].tolist()[0] == ((Flag(FlagCode.REQUEUED, text),) if text else ())
