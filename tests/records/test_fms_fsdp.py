"""IBM's fms-fsdp."""

from __future__ import annotations

from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.run_parsers import maker
from tests.records.parse_text import parse


def hits_of(name: str, text: bytes) -> list[Hit]:
    """Read every line, without a search for the literals: compiling them takes the most time."""
    parser = maker(name)()
    return [
        hit for raw in text.split(b"\n") for hit in parser.read(Line(raw)) if isinstance(hit, Hit)
    ]


def test_fms_fsdp() -> None:
    block = (
        "step: {}\nloss: 4.25\nLR: 0.0003\ntokens seen: 100\nmax reserved memory (GiB): 40.50\n"
        "current step time: 1.25\noverall token per gpu per sec: 6000\n"
    )
    text = block.format(100) + block.format(200)
    found = [(hit.metric, hit.value, hit.step, hit.steps) for _, hit, _ in parse(text.encode())]
    assert found[4:] == [
        ("loss", 4.25, 200, 100),
        ("memory", 40.5, 200, 1),
        ("step_time", 1.25, 200, 100),
        ("tokens_per_second", 6000, 200, 1),
    ]


def test_values_before_a_step_are_not_those_of_fms_fsdp() -> None:
    assert not parse(b"loss: 4.25\noverall step time: 1.25\n")
