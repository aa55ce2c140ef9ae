from typing import Any

import pandas as pd

from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.scaling.measurements import node_frame
from tests.scaling.studies import expected, record, steps, study

# Ranks 0 and 1 are on n1, rank 2 and 3 on n2.
NODES = ("n1", "n1", "n2", "n2")


def of_ranks(metric: str, times: list[list[float]], **fields: Any) -> list[Record]:
    """`times[step][rank]`."""
    return [
        record(
            "a", metric, time, scope="per_rank", step=step, rank=rank, node=NODES[rank], **fields
        )
        for step, of_step in enumerate(times, start=1)
        for rank, time in enumerate(of_step)
    ]


def frame(records: list[Record], warmup: int = 0) -> pd.DataFrame:
    runs = [expected("z"), expected("a", nodes=2, gpus=2)]
    return node_frame(study(runs, warmup=Warmup(steps=warmup)), records)


def test_a_slow_node_shows() -> None:
    times = [[9, 9, 9, 9], [1, 2, 4, 4], [1, 2, 4, 6], [1, 2, 4, 4]]
    found = frame(of_ranks("step_time", [[float(t) for t in step] for step in times]), warmup=1)
    assert found["run_id"].tolist() == ["a", "a"]
    assert found["node"].tolist() == ["n1", "n2"]
    assert found["step_time_s"].tolist() == [1.5, 4.0]


def test_where_ranks_wait_for_one_another_compute_time_tells_them_apart() -> None:
    records = of_ranks("step_time", [[5.0] * 4] * 3)
    records += of_ranks("phase_time", [[1.0, 1.0, 2.0, 2.0]] * 3, variant="forward-compute")
    records += of_ranks("phase_time", [[1.0, 1.0, 2.5, 2.5]] * 3, variant="backward-compute")
    records += of_ranks("phase_time", [[9.0, 9.0, 9.0, 9.0]] * 3, variant="forward-recv")
    found = frame(records)
    assert found["step_time_s"].tolist() == [2.0, 4.5]


def test_compute_time_of_one_node_only_tells_nothing_of_the_others() -> None:
    records = of_ranks("step_time", [[5.0] * 4] * 3)
    records += of_ranks("phase_time", [[1.0, 1.0]] * 3, variant="forward-compute")
    assert frame(records)["step_time_s"].tolist() == [5.0, 5.0]


def test_a_line_without_a_node_is_of_the_node_of_its_rank() -> None:
    records = steps("a", [[1.0, 1.0], [3.0, 3.0]])
    named = [record("a", "loss", 1, rank=rank, node=f"n{rank}") for rank in (0, 1)]
    found = frame([*records, *named])
    assert found[["node", "step_time_s"]].to_numpy().tolist() == [["n0", 1.0], ["n1", 3.0]]


def test_the_compute_time_of_an_event_is_the_same() -> None:
    records = of_ranks("step_time", [[5.0] * 4] * 3)
    records += of_ranks("compute_time", [[1.0, 1.0, 3.0, 3.0]] * 3)
    found = frame(records)
    assert found["step_time_s"].tolist() == [1.0, 3.0]
