"""Dumps that torch's flight recorder writes, here of gloo: they name the rank that did not join."""

import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.diagnosis.waits import FlightDump, explain_dumps, read_dump
from tests.trainer.launching import environment, meeting_point

pytest.importorskip("torch")

# The third rank leaves out a collective, and the others wait for it. NCCL's watchdog would write
# the dumps; gloo has none, so that the program writes them.
PROGRAM = """\
import datetime, os
from pathlib import Path
import torch
from torch import distributed
from torch._C import _distributed_c10d as c10d
distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
pair = distributed.new_group([0, 1])
rank = distributed.get_rank()
for _ in range(5):
    distributed.all_reduce(torch.ones(64))
if rank != 2:
    distributed.broadcast(torch.ones(8), 0, group=pair)
    try:
        distributed.all_reduce(torch.ones(64, 2))
    except RuntimeError as error:
        print(error)
for form, dump in {
    "pickle": c10d._dump_fr_trace(True, True, False),
    "json": c10d._dump_fr_trace_json(True, False),
}.items():
    Path(form, f"nccl_trace_rank_{rank}").write_bytes(dump)
os._exit(0)
"""


FORMS = ("pickle", "json")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dumps")
    (folder / "late.py").write_text(PROGRAM)
    for form in FORMS:
        (folder / form).mkdir()
    common = environment(WORLD_SIZE=3, TORCH_FR_BUFFER_SIZE=100, **meeting_point())
    ranks = [
        subprocess.Popen([sys.executable, "late.py"], env={**common, "RANK": str(n)}, cwd=folder)
        for n in range(3)
    ]
    assert [rank.wait(timeout=400) for rank in ranks] == [0, 0, 0]
    return folder


@pytest.fixture(params=FORMS)
def dumps(request: pytest.FixtureRequest, written: Path) -> list[FlightDump]:
    paths = sorted((written / request.param).glob("nccl_trace_rank_*"))
    return [read_dump(path, path.name) for path in paths]


def test_the_rank_that_did_not_come_is_named(dumps: list[FlightDump]) -> None:
    hang, evidence = explain_dumps(dumps, 3)
    assert hang is not None
    assert hang.late == (2,)
    assert hang.title == (
        "Ranks 0-1 waited in collective 6 (ALLREDUCE), and rank 2 did not join: last enqueued 5"
    )
    texts = [one.text for one in evidence]
    assert "rank 0, process group 0: it waited in collective 6 (all_reduce of 64x2" in texts[0]
    assert "rank 2, process group 0: its last was collective 5 (all_reduce of 64" in texts[1]
    assert [one.source for one in evidence] == ["nccl_trace_rank_0", "nccl_trace_rank_2"]


def test_the_line_of_the_program_is_known(dumps: list[FlightDump]) -> None:
    places = {operation.place for operation in dumps[0].operations}
    assert places in ({"late.py:10", "late.py:12", "late.py:14"}, {""})
