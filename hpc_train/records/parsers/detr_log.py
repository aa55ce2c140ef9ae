"""log.txt of DETR, DeiT, MAE, DINO, ConvNeXt: one JSON object per epoch, `{"train_lr": .., ..}`.

| key | metric | unit | scope |
|---|---|---|---|
| train_loss | loss, mean over the epoch and the ranks | 1 | global |
| test_loss | loss, variant validation | 1 | global |
| test_acc1, in per cent | accuracy | 1 | global |
| train_lr | learning_rate, mean over the epoch | 1 | global |

Written by the main process; epochs count from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import finite, scaled, scan_object, whole

_FIELDS = {
    "train_loss": Field("loss", "global"),
    "test_loss": Field("loss", "global", variant="validation"),
    "test_acc1": Field("accuracy", "global", 1e-2),
    "train_lr": Field("learning_rate", "global"),
}


class DetrLog:
    """Parser of such a file's lines."""

    title = "log.txt of DETR, DeiT, MAE, DINO, ConvNeXt"
    literals = (b'"train_loss": ',)
    sample = (
        '{"train_lr": 0.0001, "train_loss": 6.8098, "test_loss": 6.5384, "test_acc1": 1.214, '
        '"test_acc5": 4.26, "epoch": 3, "n_parameters": 22050664}'
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "accuracy": "global",
        "learning_rate": "global",
    }
    wants_next = False

    def __call__(self) -> DetrLog:
        """Return itself: it has no state."""
        return self

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of an epoch, from a line that is one JSON object."""
        text = line.text.strip()
        if not text.startswith("{"):
            return
        found = scan_object(text, 0)
        if found is None:
            yield Unreadable()
            return
        log, end = found
        epoch = whole(log.get("epoch"))
        if epoch is None or end != len(text) or "train_lr" not in log:
            return
        for key, field in _FIELDS.items():
            value = finite(log.get(key))
            if value is not None:
                value = scaled(value, field.scale)
                yield Hit(field.metric, value, field.scope, epoch, variant=field.variant)


PARSER = DetrLog()
