"""Interface for plug-ins: a parser that is one regular expression."""

from hpc_train.records.parsing.single_regex_parser import PatternParser

__all__ = ["PatternParser"]
