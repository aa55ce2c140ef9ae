"""A CloudWatch of files: the lines that a container printed are the events of its stream."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hpc_train.lab.sagemaker.faults import Faults

GROUP = "/aws/sagemaker/TrainingJobs"
# AWS returns 10,000; fewer, so that a test has several pages.
_EVENTS = 200
_TOKEN = re.compile(r"f/(\d{1,12})(e?)")


class ServiceError(Exception):
    """An error that the service answers: its code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class LogStore:
    """The streams of all jobs, in the order of their creation."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._streams: dict[str, tuple[Path, int]] = {}

    def add(self, name: str, output: Path, now_ms: int) -> None:
        """Create a stream whose events are the lines of a file."""
        self._streams[name] = (output, now_ms)

    def describe(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer DescribeLogStreams; there is no group before the first container has started."""
        if not self._streams:
            raise ServiceError(
                "ResourceNotFoundException", "The specified log group does not exist."
            )
        prefix = request.get("logStreamNamePrefix", "")
        return {
            "logStreams": [
                {"logStreamName": name, "creationTime": created}
                for name, (_, created) in sorted(self._streams.items())
                if name.startswith(prefix)
            ]
        }

    def events(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer GetLogEvents: at the end, the next token is that of the request."""
        name, token = request["logStreamName"], request.get("nextToken")
        if name not in self._streams:
            raise ServiceError(
                "ResourceNotFoundException", "The specified log stream does not exist."
            )
        if token and self._faults.take("old_token"):
            raise ServiceError("InvalidParameterException", "The specified nextToken is invalid.")
        match = _TOKEN.fullmatch(token or "f/0")
        first = int(match[1]) if match else 0
        if not (match and match[2]) and self._faults.take("empty_page"):
            return {"events": [], "nextForwardToken": f"f/{first}e", "nextBackwardToken": "b/0"}
        output, created = self._streams[name]
        lines = _whole_lines(output)[first : first + _EVENTS]
        events = [
            {"message": line, "timestamp": created + first + index, "ingestionTime": created}
            for index, line in enumerate(lines)
        ]
        following = f"f/{first + len(lines)}" if lines else (token or f"f/{first}")
        return {"events": events, "nextForwardToken": following, "nextBackwardToken": "b/0"}


def _whole_lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text[: text.rfind("\n") + 1].split("\n")[:-1]
