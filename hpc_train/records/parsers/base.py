"""Interface for plug-ins: what a parser yields, `Hit` and `Unreadable`, and `LogParser`."""

from hpc_train.records.parsing.base import OF_LINE, Hit, LogParser, Unreadable

__all__ = ["OF_LINE", "Hit", "LogParser", "Unreadable"]
