"""The output of the probe script -> its sections."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.model.value import Value
from hpc_train.probe.numbers import whole
from hpc_train.probe.script import MARK

_ABSENT = 127
_LATE = (124, 137)


class Section(Value, frozen=True, kw_only=True):
    """What one program printed, and its exit code; none where the output ends in the middle."""

    text: str
    returncode: int | None = None

    @property
    def problem(self) -> str:
        """Return why there is nothing to read; empty for an answer or for no such program."""
        if self.returncode is None:
            return "the answer is cut off"
        return "no answer in time" if self.returncode in _LATE else ""

    @property
    def absent(self) -> bool:
        """Whether there is no such program."""
        return self.returncode == _ABSENT


def sections(text: str) -> Mapping[str, Section]:
    """Return the sections by name; what a login script printed around them is left out."""
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
