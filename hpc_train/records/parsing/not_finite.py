"""A line whose training loss is NaN or infinite -> the measurement `not_finite`.

A loss that is not finite is not a measurement of `loss`. Without `not_finite`, the last finite loss
before it would look like the end of the training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit

_NO_NUMBER = re.compile(rb"oss[^\w|,;]{1,8}[-+]?(?:nan|NaN|NAN|inf|Inf|INF|null)")
may_be_no_number = _NO_NUMBER.search
_OTHER_LOSS = re.compile(rb"(?:val|test)\w{0,12}[ _/.-]{0,3}l$", re.IGNORECASE)
_BEFORE = 32


def not_finite(line: Line, hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield that the loss is not finite, unless the line has a finite one, too."""
    found = _NO_NUMBER.search(line.raw)
    if found is None or any(hit.metric == "loss" and not hit.variant for hit in hits):
        return
    if _is_training(line.raw, found):
        yield Hit("not_finite", 1.0, "per_rank", variant="loss")


def _is_training(raw: bytes, found: re.Match[bytes]) -> bool:
    """Whether it is the loss of the training: that of a validation without labels may be NaN."""
    before = raw[max(0, found.start() - _BEFORE) : found.start()]
    # Events of `@hpct` have null for NaN; elsewhere null is a value that was not measured.
    is_stated = b"@hpct" in raw or not found[0].endswith(b"null")
    return is_stated and not _OTHER_LOSS.search(before)
