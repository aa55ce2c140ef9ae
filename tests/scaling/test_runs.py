import msgspec
import pytest

from hpc_train.base.errors import ReportError
from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.scaling.runs import run_frame
from tests.scaling.studies import expected, foreign, rate, record, steps, study


def test_two_runs_of_one_name_are_refused() -> None:
    with pytest.raises(ReportError, match="two runs are called job"):
        run_frame(study([foreign("job"), foreign("job")]), rate("job", 1))


@pytest.mark.parametrize(
    ("records", "ranks"),
    [
        ([record("a", "epoch_time", 4, scope="per_rank", step=1, rank=3, parser="book")], None),
        ([record("a", "epoch_time", 4, step=1, parser="event")], None),
        ([record("a", "epoch_time", 4, step=1), record("a", "world_size", 8)], 8),
        ([record("a", "epoch_time", 4, step=1), record("a", "world_size", 1e30)], None),
    ],
)
def test_the_ranks_of_a_foreign_log(records: list[Record], ranks: int | None) -> None:
    frame = run_frame(study([foreign("a")]), records)
    assert frame["ranks"].astype(object).where(frame["ranks"].notna(), None).tolist() == [ranks]


def test_a_global_rate_printed_by_every_rank_counts_once_but_ranks_add_up() -> None:
    runs = [expected("a", gpus=2), expected("b", gpus=2)]
    records = [record("a", "samples_per_second", 100, rank=r) for r in (0, 1)]
    records += [record("b", "samples_per_second", 50, scope="per_rank", rank=r) for r in (0, 1)]
    frame = run_frame(study(runs), records)
    assert frame["samples_per_second"].tolist() == [100, 100]


def test_the_same_step_from_two_log_files_counts_once() -> None:
    once = steps("a", [[1.0] * 20])
    frame = run_frame(study([expected("a")]), [*once, *once])
    assert frame.at[0, "samples_per_second"] == 8.0


@pytest.mark.parametrize(("metric", "scope"), [("accuracy", "per_gpu"), ("world_size", "per_gpu")])
def test_a_wrong_scope_is_refused_with_its_place(metric: str, scope: str) -> None:
    wrong = record("a", metric, 1, scope=scope, line=7)
    with pytest.raises(ReportError, match=rf"job\.out:7: {metric} has scope {scope}"):
        run_frame(study([expected("a")]), [wrong])


def test_records_of_an_unlisted_run_are_refused() -> None:
    with pytest.raises(ReportError, match="stranger"):
        run_frame(study([expected("a")]), rate("stranger", 1))


def test_ranks_that_did_not_form_one_job_are_no_result() -> None:
    records = [*rate("a", 10), record("a", "world_size", 1)]
    frame = run_frame(study([expected("a", gpus=2)]), records)
    assert frame.at[0, "state"] == "UNPARSED"
    assert frame.at[0, "problem"] == "the log says world_size 1, planned 2"


def test_epoch_time_is_the_slowest_rank_without_the_first_epoch() -> None:
    records = [
        record("a", "epoch_time", value, scope="per_rank", step=epoch, rank=rank, parser="book")
        for epoch, values in enumerate([(9, 9), (4, 5), (6, 7)], start=1)
        for rank, value in enumerate(values)
    ]
    frame = run_frame(study([expected("a", gpus=2)]), records)
    assert frame.at[0, "epoch_time_s"] == 6.0
    assert frame.at[0, "whole_seconds"]


def test_series_are_the_axes_that_are_not_sizes() -> None:
    axes = {"resources.nodes": 1, "launcher": "srun", "env.X": 2}
    frame = run_frame(study([expected("a", axes=axes)]), [])
    assert frame.at[0, "series"] == "launcher=srun, env.X=2"
    assert frame.at[0, "axis.nodes"] == 1


def test_a_printed_rate_counts_beside_steps_without_a_batch() -> None:
    steps_alone = [record("a", "step_time", 0.5, step=n) for n in range(1, 5)]
    rates = [record("a", "samples_per_second", 8.0, step=n) for n in range(1, 5)]
    study_of_a = study([expected("a")], warmup=Warmup(steps=2))
    frame = run_frame(study_of_a, [*steps_alone, *rates])
    assert frame["samples_per_second"].tolist() == [8.0]
    assert frame["step_time_s"].tolist() == [0.5]
    assert run_frame(study_of_a, steps_alone)["samples_per_second"].isna().all()


def test_a_printed_rate_is_no_result_of_a_run_within_its_warmup() -> None:
    records = [record("a", "step_time", 0.5, step=1), record("a", "samples_per_second", 8.0)]
    frame = run_frame(study([expected("a")], warmup=Warmup(steps=2)), records)
    assert frame["state"].tolist() == ["UNPARSED"]


@pytest.mark.parametrize("first", [0, 1000])
@pytest.mark.parametrize(
    ("warmup", "left_out"),
    [(Warmup(steps=3), 3), (Warmup(steps=0, seconds=2.5), 3), (Warmup(steps=5, seconds=2.5), 5)],
)
def test_warmup_ends_when_both_steps_and_seconds_have_passed(
    warmup: Warmup, left_out: int, first: int
) -> None:
    # A run that continues from a checkpoint begins at a later step.
    records = [
        msgspec.structs.replace(one, step=first + (one.step or 0))
        for one in steps("a", [[1.0] * 30])
    ]
    frame = run_frame(study([expected("a")], warmup=warmup), records)
    assert frame.at[0, "warmup_steps"] == left_out
    assert frame.at[0, "steps"] == 30 - left_out


def test_steps_between_two_lines_took_as_long_as_the_later_one_says() -> None:
    """A log has every tenth step of 0.1 s: the warm-up of a second ends with its second line."""
    records = [record("a", "step_time", 0.1, step=step) for step in range(0, 40, 10)]
    frame = run_frame(study([expected("a")], warmup=Warmup(steps=0, seconds=1.0)), records)
    assert (frame.at[0, "warmup_steps"], frame.at[0, "steps"]) == (2, 2)
