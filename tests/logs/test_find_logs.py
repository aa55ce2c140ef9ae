"""Which log files one job wrote."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hpc_train.logs.collect import collect
from hpc_train.logs.formats.base import Hit
from hpc_train.logs.log_file import jobs_of
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.record import Record
from tests.logs.parse_text import parse, values


def jobs(*names: str) -> dict[str, list[str]]:
    found = jobs_of([Path(name) for name in names])
    return {key.as_posix(): [file.as_posix() for file in files] for key, files in found.items()}


def test_each_file_is_a_job() -> None:
    assert jobs("a/1.log", "a/2.log", "rank-0.out") == {
        "a/1.log": ["a/1.log"],
        "a/2.log": ["a/2.log"],
        "rank-0.out": ["rank-0.out"],
    }


def test_a_folder_with_files_of_ranks_is_one_job() -> None:
    files = ["run/rank-0.out", "run/rank-1.out", "run/slurm-7.out"]
    assert jobs(*files, "run2/rank-0.out", "run2/rank-1.out") == {
        "run": files,
        "run2": ["run2/rank-0.out", "run2/rank-1.out"],
    }


def test_the_log_folder_of_torchrun_is_one_job() -> None:
    one = ["x/attempt_0/0/stderr.log", "x/attempt_0/1/stderr.log", "x/attempt_1/0/stdout.log"]
    assert jobs(*one, "y/attempt_0/0/stderr.log") == {
        "x": one,
        "y": ["y/attempt_0/0/stderr.log"],
    }


def test_output_and_errors_are_one_job() -> None:
    assert jobs("a.err", "a.out", "b.err", "c.e81", "c.o81", "stderr", "stdout") == {
        "a.out": ["a.err", "a.out"],
        "b.err": ["b.err"],
        "c.o81": ["c.e81", "c.o81"],
        "stdout": ["stderr", "stdout"],
    }


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FORMATS = yaml.load((Path(__file__).parent / "formats.yaml").read_bytes(), LOADER)  # noqa: S506
CASES = [(name, case) for name, cases in FORMATS.items() for case in cases]
UNUSUAL = ("unit", "steps", "message_size", "variant", "once", "node")
USUAL = Hit("", 0.0, "global")


def said(number: int, hit: Hit, rank: int | None) -> str:
    """Return a hit in the words of formats.yaml."""
    words = [str(number), hit.metric, f"{hit.value:.10g}", hit.scope]
    named = [("step", hit.step), ("rank", rank)]
    words += [f"{name}={value}" for name, value in named if value is not None]
    changed = [name for name in UNUSUAL if getattr(hit, name) != getattr(USUAL, name)]
    return " ".join(words + [f"{name}={getattr(hit, name)}" for name in changed])


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{n}-{case['title']}") for n, case in CASES]
)
def test_log_states(case: dict[str, Any]) -> None:
    logs = [case["log"]] if isinstance(case["log"], str) else case["log"]
    for log in logs:
        census = ParseStats()
        found = parse(log.encode(), *case.get("parsers", ()), rank=case.get("rank"), census=census)
        assert [said(*one) for one in found] == case.get("states", []), log
        assert sum(census.damaged.values()) == case.get("damaged", 0), log


def test_table_ends_after_fifty_other_lines_but_nccl_may_talk() -> None:
    head = b"#  size  count  type  redop  root  time  algbw  busbw  #wrong\n"
    row = b"  1048576  262144  float  sum  -1  100.0  10.49  18.35  0\n"
    talk = b"node01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P\n"
    assert values(head + talk * 500 + row, "busbw") == [18.35]
    assert values(head + b"other\n" * 50 + row, "busbw") == [18.35]
    assert values(head + b"other\n" * 51 + row, "busbw") == []


LOGS = Path(__file__).parents[1] / "log_files"


def records(*names: str) -> list[Record]:
    return list(collect("run", [LOGS / name for name in names]))


def of(found: list[Record], metric: str) -> list[tuple[float, int | None, int, str]]:
    return [(r.value, r.step, r.steps, r.variant) for r in found if r.metric == metric]


def test_state_file() -> None:
    found = records("hf_state/trainer_state.json")
    assert {record.parser for record in found} == {"hf_state"}
    assert of(found, "loss") == [(2.5, 10, 10, ""), (2.25, 20, 10, ""), (2, 40, 20, "")]
    assert of(found, "grad_norm") == [(1.5, 10, 10, ""), (1, 40, 20, "")]
    assert of(found, "accuracy") == [(0.5, 20, 1, "")]
    assert of(found, "time_to_train") == [(80, None, 1, "")]


def test_results_file_repeats_the_state_file() -> None:
    found = records("hf_state/all_results.json", "hf_state/trainer_state.json")
    assert of(found, "time_to_train") == [(80, None, 1, "")]
    assert of(found, "samples_per_second") == [(32, None, 1, "")]
