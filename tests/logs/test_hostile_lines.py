"""Whatever happens to a line, every parser gives finite numbers or none."""

import time

import pytest

from hpc_train.base import registry
from hpc_train.logs.formats.formats import maker
from tests.logs.parse_text import parse

NAMES = tuple(registry.BUILT_IN["parsers"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "filler",
    [
        b" ",
        b"|",
        b"0",
        b"a",
        b"{'",
        b",",
        b"\xe2\x94\x81",
        b"=1 ",
        b"1.",
        b"9,",
        b" |",
        b"iter 1 loss 1 ",
    ],
)
def test_long_line_takes_no_long_time(name: str, filler: bytes) -> None:
    parser = maker(name)()
    body = filler * (30_000 // len(filler))
    start = time.process_time()
    for literal in parser.literals:
        parse(body + literal + body + b"\n", name)
    for line in parser.sample.encode().splitlines():
        parse(line + body + b"\n", name)
    # Where time grows with the square of the length, it is minutes.
    assert time.process_time() - start < 30
