"""Whatever happens to a line, every parser gives finite numbers or none."""

from __future__ import annotations

import math
import random
import time

import pytest

from hpc_train.base import registry
from hpc_train.logs.formats.formats import maker
from tests.logs.parse_text import parse

NAMES = tuple(registry.BUILT_IN["parsers"])
LONG = (b"1e999", b"9" * 400, b"nan", b"-inf", b"0", b"1.2.3", b"", b"-", b"\xff\xfe")


def are_finite(text: bytes, name: str) -> bool:
    return all(math.isfinite(hit.value) for _, hit, _ in parse(text, name))


@pytest.mark.parametrize("name", NAMES)
def test_cut_doubled_and_shuffled(name: str) -> None:
    sample = maker(name)().sample.encode()
    for cut in range(0, len(sample), 1 + len(sample) // 200):
        assert are_finite(sample[:cut], name)
        assert are_finite(sample[cut:], name)
        assert are_finite(sample[:cut] + sample, name)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_any_size(name: str) -> None:
    sample = maker(name)().sample.encode()
    at = [place for place, byte in enumerate(sample) if 0x30 <= byte <= 0x39]
    # Anything that repeats the same cases would do; nothing here is secret.
    choose = random.Random(1)  # noqa: S311
    for _ in range(200):
        place = choose.choice(at)
        assert are_finite(sample[:place] + choose.choice(LONG) + sample[place + 1 :], name)


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
