"""Logs of anybody as a table sees them: which are of training, and how many ranks they had."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import LogParseError
from hpc_train.model.log_selection import Search
from hpc_train.model.report_options import ReportOptions
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs

BUS = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    10.00    2.00    3.50      0
"""
STEPS = "".join(f"iter {n}: loss 2.5000, time 100.00ms, mfu 20.00%\n" for n in range(1, 30))


def problems(folder: Path, *texts: str) -> list[str]:
    for number, text in enumerate(texts):
        (folder / f"{number}.log").write_text(text)
    found = report_inputs([str(folder)], Search(root=folder / "none"))
    return [run.problem for run in found.study.runs]


def test_a_benchmark_of_a_network_is_named_as_one(tmp_path: Path) -> None:
    benchmark, both, training = problems(tmp_path, BUS, BUS + STEPS, STEPS)
    assert benchmark.startswith("a benchmark (algbw, busbw, latency), not a training")
    assert both == training == ""


def test_linpack_is_named_as_a_benchmark(tmp_path: Path) -> None:
    row = "WR11C2R4        5120   128     2     2              26.71             3.3515e+00\n"
    (problem,) = problems(tmp_path, row)
    assert problem.startswith("a benchmark (gflops, solve_time), not a training")


def test_a_log_without_a_throughput_has_a_result_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(STEPS)
    summary = build_report(report_inputs([str(tmp_path)], Search(root=tmp_path / "none"))).summary
    assert "Result: an unknown number of ranks, 100.0 ms a step (n=1)." in summary
    assert not any("No speedup" in line for line in summary)


def test_no_word_is_no_evidence(tmp_path: Path) -> None:
    with pytest.raises(LogParseError, match="no log was given"):
        report_inputs([], Search(root=tmp_path))


ALONE = '@hpct {"world_size": 1}\n'


def model(parameters: int, parts: int) -> str:
    """Return what Megatron prints of a model in so many parts, and of a step."""
    named = "".join(
        f" > number of parameters on (tensor, pipeline) model parallel rank (0, {part}): "
        f"{parameters // parts}\n"
        for part in range(parts)
    )
    return named * 2 + STEPS


@pytest.mark.parametrize(("other", "differ"), [(4_100_000_000, False), (8_000_000_000, True)])
def test_models_of_different_sizes_are_named(tmp_path: Path, other: int, differ: bool) -> None:
    for name, text in (("a", model(4_000_000_000, 2)), ("b", model(other, 4)), ("c", STEPS)):
        (tmp_path / f"{name}.log").write_text(text + ALONE)
    found = report_inputs([str(tmp_path)], Search(root=tmp_path / "none"))
    notes = build_report(found).notes
    said = f"parameters differs: 4000000000 (1 run, a.log), {other} (1 run, b.log)"
    assert any(said in note for note in notes) == differ
    allowed = build_report(found, ReportOptions(allow_mixed=("parameters",))).notes
    assert any("allowed to differ: parameters" in note for note in allowed) == differ


def test_a_log_with_a_number_of_ranks_only_is_not_called_a_benchmark(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text('@hpct {"event":"start","world_size":4}\n')
    (run,) = report_inputs([str(tmp_path / "job.log")], Search(root=tmp_path / "none")).study.runs
    assert run.problem.startswith(
        "a number of ranks, but no time or rate of training; see hpctrain"
    )
