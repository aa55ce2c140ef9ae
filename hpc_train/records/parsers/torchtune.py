"""torchtune's loggers to disk and stdout: `Step 1 | loss:.. lr:.. tokens_per_second_per_gpu:..`.

| field | metric | unit | scope |
|---|---|---|---|
| loss | loss of this step, over all ranks | 1 | global |
| val_loss | loss, variant validation, likewise | 1 | global |
| lr, grad_norm | learning_rate, grad_norm | 1 | global |
| tokens_per_second_per_gpu | tokens_per_second of this step, padding excluded | 1/s | per GPU |
| peak_memory_active, ..._alloc, ..._reserved | memory, variants max_... | GiB | per rank |

Printed by rank 0. Memory is the peak since the previous line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import NUMBER, number

_HEAD = re.compile(r"\bStep (?P<step>\d{1,12}) \|(?= [a-z_]{1,40}:)")
_FIELD = re.compile(rf" (?P<key>[a-z_]{{1,40}}):(?P<value>{NUMBER})(?P<end> |$)")
_FIELDS = {
    "loss": Field("loss", "global"),
    "val_loss": Field("loss", "global", variant="validation"),
    "lr": Field("learning_rate", "global"),
    "grad_norm": Field("grad_norm", "global"),
    "tokens_per_second_per_gpu": Field("tokens_per_second", "per_gpu"),
    "peak_memory_active": Field("memory", "per_rank"),
    "peak_memory_alloc": Field("memory", "per_rank", variant="max_allocated"),
    "peak_memory_reserved": Field("memory", "per_rank", variant="max_reserved"),
}
_LARGE = frozenset(_FIELDS) - {"loss", "val_loss", "lr", "grad_norm"}


class Torchtune:
    """Parser of the lines of torchtune's recipes."""

    title = "torchtune"
    literals = (b" tokens_per_second_per_gpu:", b"| val_loss:")
    sample = (
        "Step 10 | loss:1.5123456789 lr:2e-05 tokens_per_second_per_gpu:2012.25 "
        "peak_memory_active:36.5 peak_memory_alloc:36.5 peak_memory_reserved:40.25 grad_norm:1.5 \n"
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "learning_rate": "global",
        "tokens_per_second": "per_gpu",
        "memory": "per_rank",
        "grad_norm": "global",
    }
    wants_next = False

    def __call__(self) -> Torchtune:
        """Return itself: it has no state."""
        return self

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the fields; a space follows each of them, which copies of a log may lack."""
        head = _HEAD.search(line.text)
        if head is None:
            return
        text = line.text[head.end() :] + " " * line.raw.endswith(b" ")
        step = int(head["step"])
        for match in _FIELD.finditer(text.replace(" ", "  ")):
            field, value = _FIELDS.get(match["key"]), number(match["value"])
            if field is not None and value is not None and (match["end"] or _long(match)):
                yield Hit(field.metric, value, field.scope, step, variant=field.variant)


def _long(match: re.Match[str]) -> bool:
    """Return whether truncation would make no difference; a rate or memory is not small."""
    decimals = match["value"].partition(".")[2]
    return match["key"] in _LARGE and len(decimals) > 5 and decimals.isdecimal()


PARSER = Torchtune()
