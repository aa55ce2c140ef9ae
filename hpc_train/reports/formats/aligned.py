"""Cells -> aligned lines, for tables in which no cell needs wrapping.

rich, which wraps cells, takes a millisecond per row: a minute for very many logs.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from hpc_train.model.report import Column

_RULE = "─"


def aligned(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], gap: int, width: int
) -> str | None:
    """Return the table, columns `gap` apart; None if it is wider than `width`.

    Also None if characters are not one column wide each: rich knows their widths.
    """
    heads = [column.heading.split("\n") for column in columns]
    widths = [
        max(map(len, [*heads[place], *(row[place] for row in rows)]))
        for place in range(len(columns))
    ]
    total = sum(widths) + gap * (len(columns) - 1)
    if total > width or not _one_place_each(heads) or not _one_place_each(rows):
        return None
    line = (" " * gap).join(
        f"{{:{'>' if column.align == 'right' else '<'}{size}}}"
        for column, size in zip(columns, widths, strict=True)
    )
    deep = max(map(len, heads), default=0)
    # A heading with fewer lines is aligned with the bottom.
    above = zip(*([""] * (deep - len(head)) + head for head in heads), strict=True)
    lines = [*(line.format(*head) for head in above), _RULE * total]
    return "\n".join(text.rstrip() for text in [*lines, *(line.format(*row) for row in rows)])


def _one_place_each(rows: Sequence[Sequence[str]]) -> bool:
    texts = map("".join, rows)
    return all(text.isascii() or cell_len(text) == len(text) for text in texts)
