"""A block of a log -> runs of lines that have the form of one parser (`parsing.line_form`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from hpc_train.records.line import Line
from hpc_train.records.literal_positions import Occurrence
from hpc_train.records.log_blocks import Block
from hpc_train.records.parsing.line_form import FormReader, HitColumn
from hpc_train.records.parsing.not_finite import may_be_no_number

# Largest number of bytes in one run, because a run is kept in memory.
_WINDOW = 1 << 16


class LineRun(Line):
    """Consecutive lines of one form; as a line, it is the first of them.

    `end` is the offset of their end in the block, `index` that of the first occurrence after them;
    `columns` are their measurements, `counts` is the number of these in each line.
    """

    matches: Sequence[re.Match[str]] = ()
    end: int = 0
    index: int = 0
    columns: Sequence[HitColumn] = ()
    counts: Sequence[int] = ()

    def read_by(self, reader: FormReader) -> None:
        """Read the lines with `reader`, and set the columns; those without a value are left out."""
        lines = len(self.matches)
        # A form with no group except the label is that of lines without measurements.
        if self.matches[0].re.groups > 1:
            _, *cells = zip(*[match.groups() for match in self.matches], strict=True)
            columns = reader.read_form(*cells)
            self.columns = [column for column in columns if column.value.count(None) < lines]
        if any(None in column.value for column in self.columns):
            values = zip(*[column.value for column in self.columns], strict=True)
            self.counts = [len(line) - line.count(None) for line in values]
        else:
            self.counts = [len(self.columns)] * lines

    @property
    def ranks(self) -> Sequence[int | None]:
        """The rank that wrote each line: from srun's label, else from the file name."""
        labels = [match[1] for match in self.matches]
        return [int(label) if label else self.file_rank for label in labels]

    def line(self, place: int) -> Line:
        """Return one of the lines."""
        text = self.matches[place][0]
        return Line(text.rstrip().encode(), self.number + place, self.file_rank)


class RunFinder:
    """Finds the runs of one block; `found` are its literals, `owners` the readers of these."""

    def __init__(
        self,
        block: Block,
        found: Sequence[Occurrence],
        owners: Sequence[Sequence[int]],
        forms: Mapping[int, FormReader],
    ) -> None:
        self._data, self._size = block
        self._found, self._owners, self._forms = found, owners, forms
        self._text = ""
        self._checked = 0

    def run(self, asked: Sequence[int], start: int, index: int, *, eager: bool) -> LineRun | None:
        """Return the lines from `start` on that the only reader in `asked` reads as a run.

        `index` is that of the first occurrence from `start` on. An eager reader reads lines without
        an occurrence; other lines have exactly one, of a literal that only this reader owns.
        """
        reader = self._forms.get(asked[0]) if len(asked) == 1 else None
        form = reader.form if reader is not None else None
        if form is None:
            return None
        if not self._text:
            # Latin-1 keeps the offsets, and the forms are ASCII.
            self._text = str(memoryview(self._data)[: self._size], "latin-1")
        until, matches, end = self._finite(start), [], start
        found, last, owners = self._found, len(self._found), self._owners
        while match := form.match(self._text, end):
            stop = match.end()
            behind = index
            if not eager:
                if index >= last or found[index][0] >= stop or owners[found[index][1]] != asked:
                    break
                behind += 1
            if stop > until or (behind < last and found[behind][0] < stop):
                break
            index = behind
            matches.append(match)
            end = stop
        if not matches:
            return None
        return LineRun(b"", matches=matches, end=end, index=index)

    def _finite(self, start: int) -> int:
        """Return the end of the part in which each loss is a number; `read` reports the others."""
        if start >= self._checked:
            window = min(start + _WINDOW, self._size)
            lost = may_be_no_number(self._data, start, window)
            self._checked = lost.start() if lost else window
        return self._checked
