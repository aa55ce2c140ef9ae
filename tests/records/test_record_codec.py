"""Packs: whatever records go in, just these come out, in small pieces."""

from __future__ import annotations

from typing import Any

from hpc_train.model.record import Record
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.record_codec import Packer


def one(line: int = 1, source: str = "a.log", value: float = 1.0, **more: Any) -> Record:
    fields: dict[str, Any] = {"run": "r", "parser": "p", "metric": "loss", "unit": "1"}
    return Record(source=source, line=line, value=value, scope="global", **fields, **more)


def test_hits_of_a_line() -> None:
    packer = Packer("r", "a.log")
    line = Line(b"[rank3]: x", 7)
    hits = [Hit("loss", 2.5, "global", 9, once="loss 9"), Hit("loss", 2.0, "global", 10, rank=None)]
    packer.add("p", line, hits)
    packer.add("p", line, hits[:1])
    pack = packer.taken()
    assert list(pack.records()) == [
        one(line=7, value=2.5, step=9, rank=3),
        one(line=7, value=2.0, step=10),
        one(line=7, value=2.5, step=9, rank=3),
    ]
    assert (len(pack.kinds), pack.once, len(packer)) == (1, {0: "loss 9", 2: "loss 9"}, 0)


def test_the_host_in_the_prefix_of_a_line_is_that_of_its_values() -> None:
    packer = Packer("r", "a.log")
    for number, name in enumerate((b"n1", b"n2", b"n1"), start=1):
        packer.add("p", Line(b"[%s:0] x" % name, number), [Hit("loss", 1.0, "global")])
    assert [record.node for record in packer.taken().records()] == ["n1", "n2", "n1"]
