"""Interface for plug-ins: numbers as programs print them."""

from hpc_train.records.parsing.printed_numbers import (
    COUNTABLE,
    NUMBER,
    VALUE,
    countable,
    number,
    quotient,
    scaled,
)

__all__ = ["COUNTABLE", "NUMBER", "VALUE", "countable", "number", "quotient", "scaled"]
