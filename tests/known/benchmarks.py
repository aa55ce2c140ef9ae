"""Expected values of NCCL, of bandwidth benchmarks and of MLPerf -> how each is read."""

import json
from collections import Counter
from collections.abc import Mapping
from math import inf
from statistics import fmean, median
from typing import Any

from tests.known.near import same_count, same_minutes, same_value, same_values
from tests.known.stated import Stated, mlperf_run
from tests.known.training import Check

_GB_OF_MB = 1e-3


def _largest(metric: str, placement: str) -> Check:
    """Check the value at the largest message."""

    def check(log: Stated, expected: float) -> None:
        found = log.rows(metric, placement).sort_values("message_size", kind="stable")
        same_value(float(found["value"].iloc[-1]), expected)

    return check


def _throughput(log: Stated) -> list[float]:
    frame = log.records
    wanted = frame["metric"].isin(["samples_per_second", "tokens_per_second"])
    return [float(value) for value in frame[wanted & (frame["parser"] == "mlperf")]["value"]]


def _mean_of_set(log: Stated, expected: float) -> None:
    """Compare the score of all runs of the folder: their mean without the best and the worst."""
    runs = [mlperf_run(path) for path in sorted(log.path.parent.glob("result_*.txt"))]
    times = sorted(run["time_to_train"] if run["status"] == "success" else inf for run in runs)
    dropped = max(1, len(times) // 10) if len(times) >= 5 else 0
    scaling = log.path.parent / "scaling.json"
    factor = json.loads(scaling.read_text())["scaling_factor"] if scaling.exists() else 1.0
    same_minutes(fmean(times[dropped : len(times) - dropped]) * factor, expected)


def _step_times(log: Stated) -> list[float]:
    return log.values("step_time", parser="mlperf")


def _says(name: str) -> Check:
    def check(log: Stated, expected: object) -> None:
        assert log.mlperf[name] == expected

    return check


def _status(log: Stated, expected: str) -> None:
    assert log.mlperf["status"] == expected
    assert (log.diagnosed.diagnosis.outcome == "success") == (expected == "success")


def _per_gpu(log: Stated, expected: float) -> None:
    same_value(log.row["samples_per_second"] / log.row["ranks"], expected)


def _osu(pick: Any) -> Check:
    return lambda log, mb: same_value(pick(log.values("algbw")), mb * _GB_OF_MB)


MLPERF: Mapping[str, Check] = {
    "time_to_train_min": lambda log, minutes: same_minutes(
        log.values("time_to_train", parser="mlperf")[0], minutes
    ),
    "status": _status,
    "submission_benchmark": _says("benchmark"),
    "submission_platform": _says("platform"),
    "throughput_records": lambda log, n: same_count(len(_throughput(log)), n),
    "throughput_samples_s_median": lambda log, v: same_value(median(_throughput(log)), v),
    "train_step_timing_records": lambda log, n: same_count(len(_step_times(log)), n),
    "train_step_timing_median_s": lambda log, s: same_value(median(_step_times(log)), s),
    "samples_per_s_per_gpu": _per_gpu,
    "set_olympic_mean_min": _mean_of_set,
    "set_runs": lambda log, n: same_count(len(list(log.path.parent.glob("result_*.txt"))), n),
}


def _adapters(log: Stated, lists: list[str]) -> None:
    """Compare the adapters that NCCL listed: `mlx5_0:1/IB/SHARP ..`."""
    found = [f"{one.name}/{one.link_layer}" for one in log.transport.adapters]
    assert found == (lists[0].replace("/SHARP", "").split() if lists else [])


def _counts(name: str) -> Check:
    def check(log: Stated, expected: dict[str, int]) -> None:
        found = getattr(log.transport, name)
        assert set(found) == set(expected)
        for kind, count in expected.items():
            same_count(found[kind], count)

    return check


def _fact(name: str) -> Check:
    def check(log: Stated, expected: float | None) -> None:
        found = getattr(log.transport, name)
        if expected is None:
            # What this version prints no line of.
            assert name == "nodes" and found in (None, len(log.transport.hosts))
        else:
            same_count(found, expected)

    return check


def _versions(log: Stated, expected: list[str]) -> None:
    assert list(log.transport.nccl_version) == expected


def _verdict(log: Stated, words: str) -> None:
    """Compare a sentence on a log: the verdict names the network, and what is wrong is found."""
    seen = {finding.id for finding in log.diagnosed.diagnosis.findings}
    if "SHARP coll init failed" in words:
        assert "nccl_sharp_unavailable" in seen and log.transport.verdict == "IB+GDR"
    else:
        assert "harmless" in words and not log.transport.findings


NCCL: Mapping[str, Check] = {
    "channels": _counts("channels"),
    "using_network": _counts("using_network"),
    "max_nNodes_line": _fact("nodes"),
    "max_nranks": _fact("ranks"),
    "distinct_hostnames": lambda log, n: same_count(len(set(log.transport.hosts)), n),
    "hca_list": _adapters,
    "nccl_version": _versions,
    "diagnosis": _verdict,
}


def _bits(pick: Any) -> Check:
    return lambda log, gbps: same_value(pick(log.values("algbw", "both_ways")) * 8, gbps)


def _sizes(log: Stated, expected: int) -> None:
    assert log.rows("busbw", "out_of_place")["message_size"].max() == expected


BANDWIDTH: Mapping[str, Check] = {
    "allreduce_bench_algo_gbps_max": _bits(max),
    "allreduce_bench_algo_gbps_min": _bits(min),
    "avg_bus_bw_GBps": lambda log, v: same_values(log.values("busbw", "average"), [v]),
    "avg_bus_bw_list": lambda log, v: same_values(log.values("busbw", "average"), v),
    "max_size_B": _sizes,
    "oop_time_us": _largest("latency", "out_of_place"),
    "oop_algbw": _largest("algbw", "out_of_place"),
    "oop_busbw": _largest("busbw", "out_of_place"),
    "ip_busbw": _largest("busbw", "in_place"),
    "out_of_bounds": lambda log, n: same_values(log.values("wrong_values"), [n]),
    "last_size": lambda log, size: same_count(log.rows("algbw")["message_size"].iloc[-1], size),
    "last_value": _osu(lambda values: values[-1]),
    "max_value": _osu(max),
    "min_value": _osu(min),
    "bytes": lambda log, size: same_count(log.rows("algbw")["message_size"].iloc[0], size),
    "bw_avg_gbps": lambda log, gbps: same_values([v * 8 for v in log.values("algbw")], [gbps]),
    "bw_peak": lambda log, _: _no_zero(log),
}


def _no_zero(log: Stated) -> None:
    """Assert that what was not measured is not stated as 0."""
    assert Counter(log.values("algbw"))[0.0] == 0 and not log.values("algbw", "peak")
