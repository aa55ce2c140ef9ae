"""The output of the probe script -> its sections."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.model.value import Value
from hpc_train.probe.parse_numbers import whole
from hpc_train.probe.probe_script import MARK

_ABSENT = 127
_LATE = (124, 137)


class Section(Value, frozen=True, kw_only=True):
    """The output of one program, and its exit code; None if the output is truncated."""

    text: str
    returncode: int | None = None

    @property
    def problem(self) -> str:
        """Return the error of a program; empty for an answer or for a missing program."""
        if self.returncode is None:
            return "the answer is truncated"
        return "no answer in time" if self.returncode in _LATE else ""

    @property
    def absent(self) -> bool:
        """Whether there is no such program."""
        return self.returncode == _ABSENT


def sections(text: str) -> Mapping[str, Section]:
    """Return the sections by name, without the output of login scripts."""
    found: dict[str, Section] = {}
    name, lines = "", list[str]()
    for line in text.splitlines():
        if not line.startswith(f"{MARK} "):
            lines.append(line)
            continue
        word = line.removeprefix(f"{MARK} ").strip()
        if word.startswith("="):
            code = word.removeprefix("=").strip()
            found[name] = Section(text="\n".join(lines), returncode=whole(code))
        else:
            name = word
            found[name] = Section(text="")
        lines = []
    if name and found[name].returncode is None:
        found[name] = Section(text="\n".join(lines))
    return found
