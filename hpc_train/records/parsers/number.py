"""Interface for plug-ins: numbers as programs print them."""

from hpc_train.records.parsing.number import (
    COUNTABLE,
    NUMBER,
    VALUE,
    countable,
    number,
    quotient,
    scaled,
)

__all__ = ["COUNTABLE", "NUMBER", "VALUE", "countable", "number", "quotient", "scaled"]
