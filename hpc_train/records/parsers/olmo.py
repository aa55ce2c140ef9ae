"""OLMo and OLMo-core: blocks of a header `[step=n/N,...]` and a line `name=value` per metric.

| line | metric | unit | scope |
|---|---|---|---|
| `throughput/device/TPS`, in OLMo `.../tokens_per_second` | tokens_per_second | 1/s | per GPU |
| `throughput/device/MFU` | mfu, printed in percent | 1 | per GPU |
| `throughput/device/flopsPS`, as `441.0T` | tflops | TFLOP/s | per GPU |
| `train/CE loss`, in OLMo `train/CrossEntropyLoss` | loss | 1 | global |
| `optim/total grad norm` | grad_norm | 1 | global |
| `optim/LR (group 0)`, in OLMo `optim/learning_rate_group0` | learning_rate | 1 | global |
| `gpu_memory/GPU reserved mem (GiB)` | memory | GiB | per rank |
| `System/Peak GPU Memory (MB)` | memory, largest of all ranks, 1e6 B | GiB | per rank |

`(actual avg)` values are means of the whole run, including stalls: variant actual_average.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.key_value_fields import Field
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled

_HEAD = re.compile(r"\[step=(\d{1,15})/(?:\d{1,15}|\?\?\?)[],]")
_ROW = re.compile(rf"\s{{1,12}}(?P<key>[a-zA-Z][^=]{{3,80}})=(?P<value>{NUMBER}[TP]?)")
_TOKENS = Field("tokens_per_second", "per_gpu")
_MFU = Field("mfu", "per_gpu", 1e-2)
_FLOPS = Field("tflops", "per_gpu", 1e-12)
_LOSS = Field("loss", "global")
_NORM = Field("grad_norm", "global")
_RATE = Field("learning_rate", "global")
_FIELDS = {
    "throughput/device/TPS": _TOKENS,
    "throughput/device/TPS (actual avg)": _TOKENS._replace(variant="actual_average"),
    "throughput/device/tokens_per_second": _TOKENS,
    "throughput/device/MFU": _MFU,
    "throughput/device/MFU (actual avg)": _MFU._replace(variant="actual_average"),
    "throughput/device/flopsPS": _FLOPS,
    "throughput/device/flopsPS (actual avg)": _FLOPS._replace(variant="actual_average"),
    "train/CE loss": _LOSS,
    "train/CrossEntropyLoss": _LOSS,
    "optim/total grad norm": _NORM,
    "optim/total_grad_norm": _NORM,
    "optim/LR (group 0)": _RATE,
    "optim/LR": _RATE,
    "optim/learning_rate_group0": _RATE,
    "gpu_memory/GPU reserved mem (GiB)": Field("memory", "per_rank"),
    "System/Peak GPU Memory (MB)": Field("memory", "per_rank", 1e6 / 2**30),
}


class Olmo:
    """Parser of the console logger's blocks."""

    title = "OLMo, OLMo-core"
    literals = (b"[step=", *(f" {key}=".encode() for key in _FIELDS))
    sample = (
        "2025-01-01 10:00:00.000 node1:0 console_logger:118 INFO [step=10/200,epoch=1,eta=4m]\n"
        "    train/CE loss=9.214\n"
        "    throughput/device/TPS=12,345\n"
        "    throughput/device/MFU=41.25\n"
        "    optim/total grad norm=3.114\n"
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "tokens_per_second": "per_gpu",
        "mfu": "per_gpu",
        "grad_norm": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._step: int | None = None

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the metric of a row; remember the step of a header."""
        if head := _HEAD.search(line.text):
            self._step = int(head[1])
        row = _ROW.fullmatch(line.text)
        field = _FIELDS.get(row["key"]) if row else None
        value = number(row["value"]) if row else None
        if field is not None and value is not None:
            value = scaled(value, field.scale)
            yield Hit(field.metric, value, field.scope, self._step, variant=field.variant)
