"""Interface for plug-ins: a parser that is one regular expression."""

from hpc_train.records.parsing.pattern import PatternParser

__all__ = ["PatternParser"]
