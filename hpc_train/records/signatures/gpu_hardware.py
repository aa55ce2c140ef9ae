"""Signatures of broken GPUs, links and nodes, as the kernel and the driver tell them."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_XID = ("https://docs.nvidia.com/deploy/xid-errors/",)
_DRAIN = (
    "Drain the node (`scontrol update nodename=NODE state=drain reason=xid`), report it to the site"
    " and start the job again without it (`--exclude=NODE`)."
)


def _xid(codes: str) -> re.Pattern[str]:
    return re.compile(
        rf"NVRM: (?:GPU at )?Xid \((?:PCI:)?(?P<gpu>[0-9A-Fa-f:.]{{4,24}})[^)]{{0,40}}\): "
        rf"(?P<xid>{codes})\b"
    )


GPU_HARDWARE = (
    Signature(
        id="xid_fallen_off_the_bus",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"NVRM: Xid", b"GPU has fallen off the bus"),
        pattern=re.compile(
            r"NVRM: (?:Xid \((?:PCI:)?[0-9A-Fa-f:.]{4,24}[^)]{0,40}\): 79\b"
            r"|.{0,80}GPU has fallen off the bus)"
        ),
        title="A GPU has fallen off the bus (Xid 79): the node cannot talk to it any more",
        cause="Power, heat, a riser or the GPU itself; nothing in the program can cause it.",
        advice=f"{_DRAIN} The GPU needs a power cycle of the node.",
        example="[ 812.1] NVRM: Xid (PCI:0000:4e:00): 79, pid=811, GPU has fallen off the bus.",
        sources=_XID,
    ),
    Signature(
        id="xid_double_bit_ecc",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"NVRM: Xid",),
        pattern=_xid("48"),
        title="GPU {gpu} has an uncorrectable memory error (Xid 48, double-bit ECC)",
        cause="Memory of the GPU is broken; what was in it is lost.",
        advice=f"{_DRAIN} The GPU must be reset before anybody uses it.",
        example="NVRM: Xid (PCI:0000:07:00): 48, pid='<unknown>', DBE at partition 3",
        sources=_XID,
    ),
    Signature(
        id="xid_row_remap_failed",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"NVRM: Xid",),
        pattern=_xid("64"),
        title="GPU {gpu} could not replace broken memory rows (Xid 64)",
        cause="No spare rows are left, or the record of them cannot be written.",
        advice=f"{_DRAIN} Such a GPU is replaced.",
        example="NVRM: Xid (PCI:0000:07:00): 64, Row Remapper: Error: all reserved rows are used",
        sources=_XID,
    ),
    Signature(
        id="xid_uncontained_ecc",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"NVRM: Xid",),
        pattern=_xid("95"),
        title="GPU {gpu} has a memory error that could not be kept to one program (Xid 95)",
        cause="All programs on the GPU may have read wrong data.",
        advice=f"{_DRAIN} Go on from a checkpoint written before the error.",
        example="NVRM: Xid (PCI:0000:07:00): 95, pid=99, Uncontained: FBHUB",
        sources=_XID,
    ),
    Signature(
        id="xid_contained_ecc",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"NVRM: Xid",),
        pattern=_xid("94"),
        title="GPU {gpu} had a memory error that hit one program only (Xid 94)",
        cause="Memory of the GPU failed; the driver killed the program that used it.",
        advice="Start the job again; the GPU is reset when it is idle. Report it if it comes"
        " again.",
        example="NVRM: Xid (PCI:0000:07:00): 94, pid=4242, Contained: CE User Channel",
        sources=_XID,
    ),
    Signature(
        id="xid_row_remap",
        group="gpu_hardware",
        severity="warning",
        literals=(b"NVRM: Xid",),
        pattern=_xid("63"),
        title="GPU {gpu} replaced broken memory rows (Xid 63)",
        cause="An ECC error was mended; it counts from the next reset on.",
        advice="The job can go on; ask the site to reset the GPU soon (`nvidia-smi -q -d"
        " ROW_REMAPPER`).",
        example="NVRM: Xid (PCI:0000:07:00): 63, Row Remapper: New row marked for remapping",
        sources=_XID,
    ),
    Signature(
        id="xid_single_bit_ecc",
        group="gpu_hardware",
        severity="warning",
        literals=(b"NVRM: Xid",),
        pattern=_xid("92"),
        title="GPU {gpu} mends many single-bit memory errors (Xid 92)",
        cause="Memory of the GPU grows old or hot.",
        advice="The results are right; tell the site, and avoid the node for long jobs.",
        example="NVRM: Xid (PCI:0000:07:00): 92, High single-bit ECC error rate",
        sources=_XID,
    ),
    Signature(
        id="xid_nvlink",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"NVRM: Xid",),
        pattern=_xid("74|14[4-9]|150"),
        title="GPU {gpu} reports a failing NVLink (Xid {xid})",
        cause="A link, an NVSwitch, or a GPU at the other end that is in trouble itself.",
        advice=f"{_DRAIN} `nvidia-smi nvlink -e` shows which link counts errors.",
        example="NVRM: Xid (PCI:0000:0f:00): 74, pid=1, NVLink: fatal error detected on link 2",
        sources=_XID,
    ),
    Signature(
        id="xid_gsp",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"NVRM: Xid",),
        pattern=_xid("119|120"),
        title="The firmware of GPU {gpu} no longer answers (Xid {xid}, GSP)",
        cause="A fault of the driver's GSP firmware, or of the GPU.",
        advice=f"{_DRAIN} If it comes on many nodes, the site should try another driver.",
        example="NVRM: Xid (PCI:0000:1b:00): 119, pid=8, Timeout waiting for RPC from GSP0!",
        sources=_XID,
    ),
    Signature(
        id="xid_application_fault",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"NVRM: Xid",),
        pattern=_xid("13|31"),
        title="A kernel on GPU {gpu} read or wrote where it must not (Xid {xid})",
        cause="Mostly a fault of the program (index out of range); if it is always this GPU,"
        " the GPU.",
        advice="Run again with CUDA_LAUNCH_BLOCKING=1 or `compute-sanitizer`, then on another"
        " node.",
        example="NVRM: Xid (PCI:0000:07:00): 31, pid=77, name=python, MMU Fault: ENGINE GRAPHICS",
        sources=_XID,
    ),
    Signature(
        id="xid_follow_up",
        group="gpu_hardware",
        severity="info",
        role="consequence",
        literals=(b"NVRM: Xid",),
        pattern=_xid("43|45"),
        title="GPU {gpu} stopped what a program was doing on it (Xid {xid})",
        cause="Comes after another error, or when a job is killed.",
        advice="Look for the Xid or the error of the program before it.",
        example="NVRM: Xid (PCI:0000:07:00): 45, pid=77, Preemptive Removal, Channel Id 9",
        sources=_XID,
    ),
    Signature(
        id="xid_other",
        group="gpu_hardware",
        severity="warning",
        literals=(b"NVRM: Xid",),
        pattern=_xid(r"\d{1,4}"),
        title="The driver reports Xid {xid} on GPU {gpu}",
        cause="The list of Xid codes says what it means.",
        advice="Look the code up in NVIDIA's list of Xid errors; if it comes again, drain the"
        " node.",
        example="NVRM: Xid (PCI:0000:07:00): 38, pid=12, firmware watchdog",
        sources=_XID,
    ),
    Signature(
        id="gpu_handle_lost",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"Unable to determine the device handle for",),
        pattern=re.compile(
            r"Unable to determine the device handle for (?:gpu|GPU)\s?"
            r"(?P<gpu>[0-9A-Fa-f:.]{1,24}): (?P<why>[^\n]{1,80})"
        ),
        title="nvidia-smi can no longer reach GPU {gpu}: {why}",
        cause="The GPU is lost: it fell off the bus, or its driver hangs.",
        advice=_DRAIN,
        example="Unable to determine the device handle for GPU0000:4E:00.0: Unknown Error",
    ),
    Signature(
        id="nic_link_down",
        group="gpu_hardware",
        severity="warning",
        literals=(b"Link down", b"link becomes ready", b"NETDEV WATCHDOG"),
        pattern=re.compile(
            r"(?:mlx[45]_core|mlx[45]_\d|\bib\w{1,12}|IPv6: ADDRCONF)\b.{0,80}"
            r"(?P<event>Link down|link becomes ready)|(?P<watchdog>NETDEV WATCHDOG: \w{1,15})"
        ),
        title="A network link of the node went down or came back",
        cause="A cable, a transceiver or a switch port: jobs lose their connections meanwhile.",
        advice="Compare the time with the job's first network error; ask the site to check the port"
        " (`ibqueryerrors`, `mlxlink`).",
        example="[ 99.1] mlx5_core 0000:5d:00.0 ib0: Link down",
    ),
    Signature(
        id="machine_check",
        group="gpu_hardware",
        severity="fatal",
        literals=(b"[Hardware Error]: ", b"EDAC MC"),
        pattern=re.compile(r"\[Hardware Error\]: |EDAC MC\d{1,3}: \d{1,9} UE "),
        title="The node's processor or memory reports a hardware error",
        cause="Broken memory, processor or PCIe device of the node.",
        advice=_DRAIN,
        example="[ 4.2] mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7",
    ),
)
