"""MLPerf logs of all rounds: what counts once, what does not count, and what is no number."""

from pathlib import Path

from hpc_train.logs.collect import collect
from hpc_train.logs.read_log import ParseStats

LOGS = Path(__file__).parents[1] / "log_files" / "mlperf"


def test_what_several_ranks_print_counts_once() -> None:
    census = ParseStats()
    records = list(collect("r", [LOGS / "doubled.log"], "mlperf", census=census))
    assert [(r.metric, r.value, r.scope, r.step, r.variant) for r in records] == [
        ("condition", 1.0, "global", None, "model=llama2_70b_lora"),
        ("global_batch_size", 8.0, "global", None, ""),
        ("samples_per_second", 2.5, "global", 10, ""),
        ("step_time", 3.2, "global", 10, ""),
        ("loss", 1.25, "global", 10, ""),
        ("loss", 0.93, "global", 10, "eval"),
        ("time_to_train", 120.0, "global", None, ""),
    ]
    # The second event of the line is cut.
    assert sum(census.damaged.values()) == 1
