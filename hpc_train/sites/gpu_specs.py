"""What the vendors' data sheets state of a GPU: memory, peak and link, by its name."""

import re
from collections.abc import Mapping
from typing import NamedTuple


class GpuSpec(NamedTuple):
    """Memory [GiB] of the smallest and the largest variant, link [GB/s] and peaks [TFLOP/s].

    `link` is NVLink or Infinity Fabric in one direction, 0 where there is none or it is not known;
    `peaks` are those of dense matrices by precision.
    """

    least_gib: float
    gib: float
    link: float = 0.0
    peaks: Mapping[str, float] = {}


def _peaks(half: float, tf32: float, single: float) -> dict[str, float]:
    return {"bf16": half, "fp16": half, "tf32": tf32, "fp32": single}


_HOPPER = _peaks(989.5, 494.7, 67)
# An MI250X may count as one GPU or two: the peaks are those of both halves.
_SPECS = {
    "P100": GpuSpec(12, 16, 80, {"fp16": 21.2, "fp32": 10.6}),
    "V100": GpuSpec(16, 32, 150, {"fp16": 125, "fp32": 15.7}),
    "T4": GpuSpec(16, 16, 0, {"fp16": 65, "fp32": 8.1}),
    "A10": GpuSpec(24, 24, 0, _peaks(125, 62.5, 31.2)),
    "A10G": GpuSpec(24, 24),
    "A30": GpuSpec(24, 24, 100, _peaks(165, 82, 10.3)),
    "A40": GpuSpec(48, 48, 56.25, _peaks(149.7, 74.8, 37.4)),
    "A100": GpuSpec(40, 80, 300, _peaks(312, 156, 19.5)),
    "L4": GpuSpec(24, 24, 0, _peaks(121, 60, 30.3)),
    "L40": GpuSpec(48, 48, 0, _peaks(181, 90.5, 90.5)),
    "L40S": GpuSpec(48, 48, 0, _peaks(362, 183, 91.6)),
    "H100": GpuSpec(64, 96, 450, _HOPPER),
    "GH200": GpuSpec(96, 144, 450, _HOPPER),
    "H200": GpuSpec(141, 141, 450, _HOPPER),
    "B200": GpuSpec(180, 192, 900, _peaks(2250, 1125, 80)),
    "GB200": GpuSpec(186, 192, 900, _peaks(2500, 1250, 80)),
    "B300": GpuSpec(262, 288, 900),
    "GB300": GpuSpec(262, 288, 900),
    "MI100": GpuSpec(32, 32),
    "MI210": GpuSpec(64, 64),
    "MI250": GpuSpec(64, 128, 0, _peaks(362.1, 90.5, 90.5)),
    "MI250X": GpuSpec(64, 128, 0, _peaks(383, 95.7, 95.7)),
    "MI300A": GpuSpec(128, 128, 0, _peaks(980.6, 490.3, 122.6)),
    "MI300X": GpuSpec(192, 192, 0, _peaks(1307.4, 653.7, 163.4)),
    "MI325X": GpuSpec(256, 256, 0, _peaks(1307.4, 653.7, 163.4)),
    "MI350X": GpuSpec(288, 288),
    "MI355X": GpuSpec(288, 288),
}
_WORD = re.compile(r"[A-Z]{1,3}[0-9]{1,3}[A-Z]?(?![A-Z0-9])")
_SIZE = re.compile(r"\b([0-9]{1,3}) ?GI?B?\b")


def gpu_spec(name: str) -> GpuSpec | None:
    """Return the data of a GPU (`NVIDIA A100-SXM4-40GB`, `a100`); None if it is not known.

    A size in the name counts as GiB, unless it exceeds that of the model (GH200 480GB: the memory
    of the CPU). A GPU for PCIe has no link.
    """
    text = name.upper().replace("_", " ")
    words = [word for word in _WORD.findall(text) if word in _SPECS]
    found = [_SPECS[word] for word in words]
    if not found:
        return None
    spec = min(found, key=lambda one: one.gib)
    sizes = [float(size) for size in _SIZE.findall(text) if int(size) <= spec.gib]
    if sizes:
        spec = spec._replace(least_gib=min(sizes), gib=min(sizes))
    return spec._replace(link=0.0) if "PCIE" in text else spec


def most_gib(name: str) -> float | None:
    """Return the most memory [GiB] of a GPU with this name; a size in the name suffices."""
    spec = gpu_spec(name)
    if spec is not None:
        return spec.gib
    sizes = [float(size) for size in _SIZE.findall(name.upper().replace("_", " "))]
    return min(sizes) if sizes else None
