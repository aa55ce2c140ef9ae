"""Expected values of training logs -> how each is read from what the product states."""

from collections.abc import Callable, Mapping
from statistics import mean, median
from typing import Any

from tests.known.near import same_count, same_value, same_values
from tests.known.stated import Stated

Check = Callable[[Stated, Any], None]

# What a format's logs state once a record, and in which variant and scope.
MAIN = {
    "torchvision_ref": ("step_time", "per_rank"),
    "mxnet_speedometer": ("samples_per_second", "global"),
    "tf_timehistory": ("samples_per_second", "global"),
    "fairseq_json": ("tokens_per_second", "global"),
    "nanogpt": ("step_time", "per_rank"),
}
# It does not say on how many GPUs it ran: its name does, and what is known of the machine.
NO_WORLD_SIZE_FILES = frozenset({"megatron/rtx4090_n1.log"})


def _main(log: Stated) -> list[float]:
    metric, scope = MAIN[log.form]
    return log.values(metric, scope=scope)


def _step_ms(log: Stated) -> list[float]:
    return [value * 1000 for value in log.values("step_time")]


def _world_size(log: Stated, expected: int) -> None:
    found = set(log.values("world_size"))
    if str(log.path).endswith(tuple(NO_WORLD_SIZE_FILES)):
        assert not found
    else:
        assert found == {expected}


def _only(metric: str, variant: str = "") -> Check:
    """Check the one value of a metric that a log states."""

    def check(log: Stated, expected: float) -> None:
        found = set(log.values(metric, variant))
        assert len(found) == 1
        same_value(found.pop(), expected)

    return check


def _last(metric: str, scale: float = 1.0) -> Check:
    return lambda log, expected: same_value(log.values(metric)[-1] * scale, expected)


def _said_once(log: Stated, copies: int) -> None:
    """Assert that a summary which several ranks print is there, and counts once."""
    assert log.path.read_bytes().count(b"'train_runtime': ") == copies
    assert len(log.values("time_to_train")) == 1


def _rows(log: Stated, expected: int) -> None:
    """Count the rows of a table, each with a loss, a time, or a bandwidth."""
    found = log.records
    if log.form == "nccl_tests":
        found = log.rows("busbw", "out_of_place")
    same_count(found["line"].nunique(), expected)


def _image_rate(log: Stated, expected: float) -> None:
    batch, seconds = log.values("global_batch_size"), log.values("step_time", "mean")
    same_value(batch[0] / seconds[0], expected)


def _last_place(log: Stated, expected: int) -> None:
    assert log.records["step"].max() == expected


def _per_device(log: Stated, expected: bool) -> None:
    scopes = set(log.rows("tokens_per_second")["scope"])
    assert scopes == {"per_gpu" if expected else "global"}


CHECKS: Mapping[str, Check] = {
    "step_records": lambda log, n: same_count(len(_step_ms(log)), n),
    "first_step_ms": lambda log, ms: same_value(_step_ms(log)[0], ms),
    "mean_step_ms_excl_first": lambda log, ms: same_value(mean(_step_ms(log)[1:]), ms),
    "median_step_ms_excl_first": lambda log, ms: same_value(median(_step_ms(log)[1:]), ms),
    "step_ms": lambda log, ms: same_values(_step_ms(log), ms),
    "log_interval": lambda log, n: _all_equal(log.rows("step_time")["steps"].tolist(), n),
    "global_batch_size": _only("global_batch_size"),
    "gpus": _world_size,
    "gpus_named": _world_size,
    "tflops_per_gpu_median_excl_first": lambda log, tflops: same_value(
        median(log.values("tflops", scope="per_gpu")[1:]), tflops
    ),
    "samples_per_s_global": lambda log, rate: same_value(log.row["samples_per_second"], rate),
    "samples_per_s": lambda log, rate: same_value(log.row["samples_per_second"], rate),
    "steps": _only("steps"),
    "summary_dict_copies": _said_once,
    "train_runtime_dict_s": _only("time_to_train"),
    "train_runtime_s": _only("time_to_train"),
    "step_s_from_runtime": _only("step_time", "mean"),
    "train_samples_per_second": _only("samples_per_second"),
    "step_lines": lambda log, n: same_count(len(log.values("tokens_per_second")), n),
    "last_step": _last_place,
    "tps_last": _last("tokens_per_second"),
    "tps_per_device": _per_device,
    "tflops_last": _last("tflops"),
    "mfu_last": _last("mfu", 100),
    "records": lambda log, n: same_count(len(_main(log)), n),
    "first": lambda log, value: same_value(_main(log)[0], value),
    "median_examples_per_s_excl_first": lambda log, v: same_value(median(_main(log)[1:]), v),
    "median_samples_per_s_global": lambda log, value: same_value(median(_main(log)), value),
    "median_iter_s": lambda log, value: same_value(median(_main(log)), value),
    "median_ms_excl_first": lambda log, ms: same_value(median(_step_ms(log)[1:]), ms),
    "epoch0_avg_s_per_it": lambda log, s: same_value(log.values("step_time", "mean")[0], s),
    "images_per_s_global": _image_rate,
    "num_updates_last": _last_place,
    "ups_last": lambda log, ups: same_value(1 / log.values("step_time")[-1], ups),
    "wps_last": _last("tokens_per_second"),
    "wps_median": lambda log, rate: same_value(median(_main(log)), rate),
    "last_iter": _last_place,
    "rows": _rows,
    "epoch_time_rows": lambda log, n: same_count(len(log.values("epoch_time")), n),
    "train_step_rows": lambda log, n: same_count(len(log.values("loss")), n),
    "last_train_loss": _last("loss"),
    "avg_samples_per_s": lambda log, rates: same_values(log.values("samples_per_second"), rates),
    "img_s_per_gpu": lambda log, v: same_value(
        log.values("samples_per_second", scope="per_gpu")[-1], v
    ),
    "img_s_total": lambda log, v: same_values(
        log.values("samples_per_second", scope="global"), [v]
    ),
    "ci": lambda log, v: same_values(log.values("samples_per_second", "ci", scope="global"), [v]),
    "ranks": lambda log, n: _ranks(log, n),
    "ranks_reporting": lambda log, n: _ranks(log, n),
    "per_rank_rate_mean": lambda log, v: same_value(
        mean(log.values("samples_per_second", scope="per_rank")), v
    ),
    "global_rate_sum": lambda log, v: same_value(log.row["samples_per_second"], v),
}


def _all_equal(found: list[int], expected: int) -> None:
    assert set(found) == {expected}


def _ranks(log: Stated, expected: int) -> None:
    """Assert that the table knows the ranks: by their number, or as each names itself."""
    assert log.row["ranks"] == expected if log.form != "nccl_tests" else True
    named = log.rows("samples_per_second", scope="per_rank")["rank"].dropna()
    assert set(log.values("world_size")) == {expected} or set(named) == set(range(expected))
