"""Plain rows -> a caveat if points that are compared used different transports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from hpc_train.reports.words import by_series, sizes, under

Row = Mapping[str, Any]


def transport_doubts(points: Sequence[Row]) -> Iterator[str]:
    """Yield a caveat for each series whose points used different transports.

    One node needs no network: only points of several nodes are compared, or of one size.
    """
    named = sizes(points)
    for series, own in by_series(points, itemgetter("series")).items():
        known = [row for row in own if row["transport"]]
        several = [row for row in known if row["nodes"] is None or row["nodes"] > 1]
        split = [row for row in known if " / " in row["transport"]]
        if len({row["transport"] for row in several}) > 1 or split:
            rows = list({id(row): row for row in (*several, *split)}.values())
            ways = "; ".join(f"{named(row)} {row['transport']}" for row in rows[:8])
            more = f" and {len(rows) - 8} more" if len(rows) > 8 else ""
            yield f"Caveats: the transport differs{under(series)}: {ways}{more}."
