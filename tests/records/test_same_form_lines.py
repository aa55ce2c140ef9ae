"""Lines of one form are read many at a time, and state what each of them states alone."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.model.record import LOT, Pack, Record
from hpc_train.records import line_dispatch as dispatching
from hpc_train.records import log_blocks as blocks_module
from hpc_train.records import read_log
from hpc_train.records.collect import wanted
from hpc_train.records.line_dispatch import Mark, dispatch, dispatch_runs
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.run_parsers import maker
from hpc_train.records.same_form_lines import LineRun

EVENT = (
    ':::MLLOG {"namespace": "", "time_ms": 1700000000000, "event_type": "POINT_IN_TIME",'
    ' "key": "seed", "value": 1.5e-05, "metadata": {"file": "a b.py", "lineno": 7, "epoch": "x"}}'
)
TABLE = "epoch,step,train_loss,lr,train|device/batches_per_sec\n"
LINES = {
    "torchvision": "Epoch: [1]  [ 10/100]  eta: 0:00:22  lr: 0.1000  img/s: 932.5 (812.3)  "
    "loss: 6.5000 (6.9321)  time: 0.2744  data: 0.0085  max mem: 20480",
    "mxnet_speedometer": "2022-05-15 23:20:19,613 Node[0] Epoch[0] Batch [20-40]\t"
    "Speed: 12037.36 samples/sec\tloss=6.5",
    "nanogpt": "iter 10: loss 9.1839, time 2948.60ms, mfu 22.83%",
    "metrics_csv": "0,49,7.25,,8.0",
    "mlperf": EVENT,
}
WORDS = ["\r", "\x1b[31m", "\0", "\xe9", "nan", "9" * 40, " ", "-", "\n", "loss: nan", "0: ", "1,2"]


def packs(
    text: bytes, name: str, folder: Path, *, runs: bool, census: ParseStats | None = None
) -> list[Pack]:
    """Return what one parser finds, with runs or line by line."""
    path = folder / "a.log"
    path.write_bytes(text)
    log = read_log.Log("r", path, "a.log")
    parsers = read_log.parsers_of(wanted(name))
    # A prefix turns runs off; this one matches nothing.
    prefix = "" if runs else "(?!)"
    return list(read_log.read(log, parsers, prefix, census or ParseStats(), Mark()))


def records(found: list[Pack]) -> list[list[Record]]:
    return [list(pack.records()) for pack in found]


def text_of(name: str, lines: list[str]) -> bytes:
    head = TABLE if name == "metrics_csv" else ""
    return (head + "".join(f"{line}\n" for line in lines)).encode("latin-1")


def runs_in(text: bytes, name: str) -> list[LineRun]:
    """Return the runs of a text; each line is read as `collect` reads it."""
    parser, found = maker(name)(), []
    for line, _ in dispatch_runs(io.BytesIO(text), [parser], None, Mark()):
        if isinstance(line, LineRun):
            found.append(line)
        else:
            list(parser.read(line))
    return found


@pytest.mark.parametrize("end", ["", "\r"])
@pytest.mark.parametrize("label", ["", "3: "])
@pytest.mark.parametrize("name", LINES)
def test_equal_lines_are_one_run(name: str, label: str, end: str, tmp_path: Path) -> None:
    text = text_of(name, [label + LINES[name] + end] * 50)
    (run,) = runs_in(text, name)
    assert len(run.matches) == 50
    assert run.ranks == [3 if label else None] * 50
    seen, alone = ParseStats(), ParseStats()
    found = records(packs(text, name, tmp_path, runs=True, census=seen))
    assert found == records(packs(text, name, tmp_path, runs=False, census=alone))
    assert seen == alone


def damaged(name: str) -> Iterator[bytes]:
    """Yield texts in which one line of ten has a word at one of its places."""
    line = LINES[name]
    chance = random.Random(1)  # noqa: S311
    for place in range(len(line) + 1):
        word = chance.choice(WORDS)
        cut = [line[:place] + word + line[place:], line[:place], line[:place] + line]
        yield text_of(name, [line] * 4 + cut + [line] * 3)


@pytest.mark.parametrize("name", LINES)
def test_damaged_lines_take_the_usual_way(name: str, tmp_path: Path) -> None:
    for text in damaged(name):
        seen, alone = ParseStats(), ParseStats()
        found = records(packs(text, name, tmp_path, runs=True, census=seen))
        assert found == records(packs(text, name, tmp_path, runs=False, census=alone)), text
        assert seen == alone, text


@pytest.mark.parametrize("size", [300, 1000, 4096])
@pytest.mark.parametrize("name", LINES)
def test_runs_do_not_depend_on_the_blocks(
    name: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = text_of(name, [LINES[name]] * 40)
    whole = records(packs(text, name, tmp_path, runs=True))
    small = blocks_module.blocks
    monkeypatch.setattr(dispatching, "blocks", lambda stream: small(stream, size))
    assert records(packs(text, name, tmp_path, runs=True)) == whole


@pytest.mark.parametrize("name", ["torchvision", "nanogpt", "metrics_csv"])
def test_packs_end_where_they_end_line_by_line(name: str, tmp_path: Path) -> None:
    text = text_of(name, ["", *[LINES[name]] * 3 * LOT][1:])
    found = packs(text, name, tmp_path, runs=True)
    assert len(found) > 3
    assert records(found) == records(packs(text, name, tmp_path, runs=False))


SOMETIMES = {
    "metrics_csv": ["0,49,7.25,,8.0", "0,50,,,", "0,51,,0.1,", "0,52,6.5,,", "0,,5.5,,4.0"],
    "nanogpt": ["iter 1: loss 9.1839, time 2948.60ms", LINES["nanogpt"]],
    "torchvision": [
        LINES["torchvision"],
        LINES["torchvision"].replace("lr: 0.1000", ""),
        "Epoch: [0]  [  5/100]  eta: 0:00:22    time: 0.2744  data: 0.0085  max mem: 0",
    ],
    "mxnet_speedometer": [
        LINES["mxnet_speedometer"],
        "Node[0] Epoch[1] Batch [20]\tSpeed: 12037.36 samples/sec",
        "Node[0] Epoch[1] Batch [20]\tSpeed: 12037.36 samples/sec\tloss=0.5",
        "Node[0] Epoch[1] Batch [20]\tSpeed: 12037.36 samples/sec\taccuracy=0.5",
    ],
}


@pytest.mark.parametrize("name", SOMETIMES)
def test_lines_of_a_run_may_have_different_values(name: str, tmp_path: Path) -> None:
    chance = random.Random(1)  # noqa: S311
    lines = [chance.choice(SOMETIMES[name]) for _ in range(3 * LOT)]
    for text in (text_of(name, lines), text_of(name, SOMETIMES[name][1:2] * 9)):
        seen, alone = ParseStats(), ParseStats()
        found = records(packs(text, name, tmp_path, runs=True, census=seen))
        assert found == records(packs(text, name, tmp_path, runs=False, census=alone))
        assert seen == alone


def test_a_line_of_two_readers_is_in_no_run() -> None:
    text = text_of("nanogpt", [LINES["nanogpt"]] * 3)
    readers = [maker("nanogpt")(), maker("nanogpt")()]
    found = [line for line, _ in dispatch_runs(io.BytesIO(text), readers, None, Mark())]
    assert not any(isinstance(line, LineRun) for line in found)
    assert len(found) == 3


def test_runs_come_only_if_they_are_asked_for() -> None:
    text = text_of("nanogpt", [LINES["nanogpt"]] * 3)
    found = [line for line, _ in dispatch(io.BytesIO(text), [maker("nanogpt")()])]
    assert [line.number for line in found] == [1, 2, 3]
    assert not any(isinstance(line, LineRun) for line in found)


def test_a_run_is_bounded() -> None:
    text = text_of("nanogpt", [LINES["nanogpt"]] * 10_000)
    runs = runs_in(text, "nanogpt")
    assert max(len(run.matches) for run in runs) < 2000
    assert sum(len(run.matches) for run in runs) > 9_900
