"""Packs of records -> lines of CSV, in the order of the fields of `Record`.

Fields that many records share are quoted once, which takes a third of the time of `csv.writer`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any

from hpc_train.model.record import Record
from hpc_train.records.record_codec import Pack

_common = attrgetter(
    "run", "source", "parser", "metric", "unit", "scope", "node", "steps", "message_size", "variant"
)
# A folder may contain a hundred thousand logs.
_MOST = 10_000


def csv_rows(packs: Iterable[Pack]) -> Iterator[str]:
    """Yield the lines of each pack, as `csv.writer` writes them."""
    known: dict[Any, str] = {}
    for pack in packs:
        if len(known) > _MOST:
            known.clear()
        forms = [_form(kind, known) for kind in pack.kinds]
        steps = ["" if step is None else step for step in pack.step]
        ranks = ["" if rank is None else rank for rank in pack.rank]
        cells = zip(pack.line, pack.value, steps, ranks, strict=True)
        yield "".join([forms[kind] for kind in pack.kind]) % tuple(chain.from_iterable(cells))


def _form(kind: Record, known: dict[Any, str]) -> str:
    """Return the line of a kind, with placeholders for the fields that differ by record."""
    common = _common(kind)
    if common not in known:
        run, source, parser, metric, unit, scope, *rest = common
        kept = [_quoted(*cells) for cells in ((run, source), (parser, metric), (unit, scope), rest)]
        first, named, measured, last = (text.replace("%", "%%") for text in kept)
        known[common] = f"{first},%s,{named},%s,{measured},%s,%s,{last}\n"
    return known[common]


def _quoted(*cells: Any) -> str:
    text = io.StringIO()
    # A line end within a cell is quoted if it is the line end of the table.
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()[:-1]
