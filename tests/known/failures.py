"""Expected root causes -> how they are read from what `diagnose` says."""

import re
from collections.abc import Mapping

from tests.known.stated import Stated
from tests.known.training import Check


def _root_cause(log: Stated, expected: str) -> None:
    """Compare `name: words` or `name words`; the words of an exception are those of its line."""
    if expected.startswith("run succeeded"):
        assert log.diagnosed.diagnosis.outcome == "success"
        return
    match = re.fullmatch(r"(\w+)(?:: .*| (\w+) (.*))?", expected)
    assert match is not None
    assert log.diagnosed.diagnosis.outcome == "failed"
    assert log.root.id == match[1]
    for word in (match[2] or "").split() + (match[3] or "").split():
        assert word in log.root_texts


def _severity(log: Stated, expected: str) -> None:
    if expected == "benign":
        assert all(one.severity == "benign" for one in log.diagnosed.diagnosis.findings)
    else:
        assert log.root.severity == expected


def _detail(log: Stated, words: str) -> None:
    if words.startswith("genuine: allocator holds "):
        held = words.removeprefix("genuine: allocator holds ").partition(",")[0]
        assert held in log.root.title and "allocated by PyTorch" in log.root.title
    else:
        assert "the log itself shows only the timeout" in words


def _quoted(shape: str) -> Check:
    def check(log: Stated, expected: object) -> None:
        assert shape.format(expected) in log.root_texts

    return check


CHECKS: Mapping[str, Check] = {
    "root_cause": _root_cause,
    "severity": _severity,
    "detail": _detail,
    "tried": _quoted("Tried to allocate {}"),
    "free": _quoted("of which {} is free"),
    "total": _quoted("total capacity of {}"),
    "reserved_unallocated": _quoted("{} is reserved by PyTorch but unallocated"),
    "OpType": _quoted("OpType={},"),
    "SeqNum": _quoted("SeqNum={},"),
}
