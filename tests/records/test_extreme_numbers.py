"""Numbers at the ends of what is a number, in every format: a record that fits a table, or none."""

from __future__ import annotations

import re

import pytest

from hpc_train import registry
from hpc_train.model.record import UNITS, Record, packs_of
from hpc_train.records.run_parsers import maker
from hpc_train.tables.parquet import records_frame
from tests.records.parse_text import parse

EXTREME = (
    "0", "-0.0", "-1", "5e-324", "1e-320", "1e308", "1.7976931348623157e308", "1e999", "-1e999",
    "nan", "inf", "-inf", "9" * 15, "9" * 19, "9" * 25, "9" * 400, "0." + "0" * 330 + "1",
)  # fmt: skip
ALONE = ("0", "5e-324", "1.7976931348623157e308", "9" * 15, "9" * 25)
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")


def of(name: str, text: str) -> None:
    """Check that all that a parser finds has a place in a table."""
    hits = [hit for _, hit, _ in parse(text.encode(), name)]
    records = [
        Record(
            run="r", source="a.log", line=1, parser=name, metric=hit.metric, value=hit.value,
            unit=hit.unit or UNITS[hit.metric], scope=hit.scope, step=hit.step,
            message_size=hit.message_size, variant=hit.variant, steps=hit.steps,
        )
        for hit in hits
    ]  # fmt: skip
    assert len(records_frame(packs_of(records))) == len(hits)
    assert all(abs(record.value) < float("inf") for record in records)


@pytest.mark.parametrize("name", registry.names("parsers"))
def test_any_number_of_a_sample_may_be_extreme(name: str) -> None:
    sample = maker(name)().sample
    for extreme in EXTREME:
        of(name, NUMBER.sub(extreme, sample))
    numbers = list(NUMBER.finditer(sample))
    for found in numbers[:: 1 + len(numbers) // 12]:
        for extreme in ALONE:
            of(name, sample[: found.start()] + extreme + sample[found.end() :])
