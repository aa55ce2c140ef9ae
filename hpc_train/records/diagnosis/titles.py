"""A signature and what was seen of it -> one sentence that says what happened."""

from __future__ import annotations

import re

from hpc_train.records.diagnosis.order import Seen

_NAME = re.compile(r"\{(\w+)\}")
_LONGEST = 300


def title_of(seen: Seen) -> str:
    """Fill the title of the signature; what the line does not state is left out."""
    groups = dict(seen.sighting.groups)
    rank = seen.sighting.rank
    groups["of_rank"] = "" if rank is None else f" of rank {rank}"
    title = _NAME.sub(lambda name: groups.get(name[1], ""), seen.signature.title)
    return re.sub(r" {2,}", " ", title).strip(" :")[:_LONGEST]
