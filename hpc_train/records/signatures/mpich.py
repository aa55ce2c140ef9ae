"""Signatures of MPICH and of the MPI of HPE Cray."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_CRAY = ("https://cpe.ext.hpe.com/docs/",)

MPICH = (
    Signature(
        id="cray_gtl_missing",
        group="mpi",
        severity="fatal",
        literals=(b"GTL library is not linked",),
        pattern=re.compile(r"GPU_SUPPORT_ENABLED is requested, but GTL library is not linked"),
        title="The program was built without the library that gives Cray's MPI the GPUs (GTL)",
        cause="MPICH_GPU_SUPPORT_ENABLED=1, but no craype-accel-* module was loaded at build time"
        " (mpi4py: not built with the wrapper cc).",
        advice="Build it again with craype-accel-nvidia80, -nvidia90 or -amd-gfx90a loaded; if it"
        " sends no GPU buffers by MPI: MPICH_GPU_SUPPORT_ENABLED=0.",
        example="MPIDI_CRAY_init: GPU_SUPPORT_ENABLED is requested, but GTL library is not linked",
        sources=_CRAY,
    ),
    Signature(
        id="cray_gtl_error",
        group="mpi",
        severity="fatal",
        literals=(b"GTL_DEBUG: ", b"(GTL DEBUG: "),
        pattern=re.compile(r"\(?GTL[_ ]DEBUG: \[?(?P<rank>\d{1,7})[\])] (?P<text>[^\n]{1,160})"),
        title="Cray's MPI{of_rank} could not use a GPU: {text}",
        cause="The ranks of a node do not see one another's GPUs, or see none.",
        advice="--gpus to srun as well, --gpu-bind=none, and choose the device by the local rank.",
        example="(GTL DEBUG: 1) cuIpcOpenMemHandle: invalid argument, CUDA_ERROR_INVALID_VALUE",
        sources=_CRAY,
    ),
    Signature(
        id="mpich_error",
        group="mpi",
        severity="fatal",
        role="consequence",
        literals=(b"MPICH ERROR [Rank ",),
        pattern=re.compile(
            r"MPICH ERROR \[Rank (?P<rank>\d{1,7})\] \[job id [^\]\n]{1,40}\] \[[^\]\n]{1,40}\]"
            r" \[(?P<node>[^\]\s]{1,80})\] - (?P<text>[^\n]{1,200})"
        ),
        title="MPI{of_rank} ended the program: {text}",
        cause="A call of MPI failed, or another rank is gone.",
        advice="Look for the first error of all ranks, by time; the next lines name the call.",
        example="MPICH ERROR [Rank 1] [job id 71.0] [Fri Jan 31 12:00:00 2025] [nid001616] -"
        " Abort(475555330) (rank 1 in comm 0): Fatal error in PMPI_Bcast: Invalid count",
        sources=_CRAY,
    ),
)
