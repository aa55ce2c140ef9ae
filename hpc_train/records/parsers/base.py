"""Interface for plug-ins: `LogParser`, and the types that it yields, `Hit` and `Unreadable`."""

from hpc_train.records.parsing.log_parser import OF_LINE, Hit, LogParser, Unreadable

__all__ = ["OF_LINE", "Hit", "LogParser", "Unreadable"]
