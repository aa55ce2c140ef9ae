"""Signatures of NCCL and RCCL that a job survives: slower ways, ends of processes, noise."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_ENV = ("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",)

NCCL_NOTES = (
    Signature(
        id="nccl_sharp_unavailable",
        group="nccl",
        severity="warning",
        literals=(
            b"SHARP coll init error",
            b"Cannot initialize CollNet",
            b"sharp_create_job failed",
            b"No Aggregation Manager",
        ),
        pattern=re.compile(
            r"SHARP coll init error|Cannot initialize CollNet|sharp_create_job failed"
            r"|No Aggregation Manager \(sharp_am\)"
        ),
        title="SHARP is not there: collectives run without the help of the switches",
        cause="The SHARP service does not run, or its quota is used up.",
        advice="It costs speed only. NCCL_COLLNET_ENABLE=0 silences it; ask the site for SHARP.",
        example="n1:811:902 [0] sharp_plugin.c:340 NCCL WARN NET/IB :SHARP coll init error: Cannot"
        " create SHArP job(-11)",
        sources=_ENV,
    ),
    Signature(
        id="nccl_teardown",
        group="nccl",
        severity="benign",
        role="consequence",
        literals=(
            b"Could not receive type from localRank",
            b"Failed to execute operation Close",
            b"[Service thread] Accept failed",
            b"[Service thread] Error encountered",
        ),
        pattern=re.compile(
            r"Could not receive type from localRank|Failed to execute operation Close"
            r"|\[Service thread\] (?:Accept failed|Error encountered)"
        ),
        title="NCCL's helper threads met the end of other processes",
        cause="Other ranks have ended: after a good end this is usual, after a failure it follows.",
        advice="Nothing to do.",
        example="n1:811:902 [0] proxy.cc:1521 NCCL WARN [Service thread] Could not receive type"
        " from localRank 3, res=3, closed=0",
    ),
    Signature(
        id="nccl_ras_port",
        group="nccl",
        severity="benign",
        literals=(b"ras/client_support.cc", b"ras/ras.cc"),
        pattern=re.compile(r"ras/\w{1,30}\.cc:\d{1,6} NCCL WARN [^\n]{0,160}"),
        title="NCCL's monitoring port (RAS) is taken",
        cause="A second job on the node.",
        advice="Nothing to do; NCCL_RAS_ENABLE=0 silences it.",
        example="n1:811:902 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address"
        " already in use",
        sources=_ENV,
    ),
    Signature(
        id="rccl_mscclpp",
        group="nccl",
        severity="benign",
        literals=(b"Cannot enable MSCCL++",),
        pattern=re.compile(r"Cannot enable MSCCL\+\+"),
        title="RCCL does without MSCCL++",
        cause="The environment is not one that MSCCL++ supports.",
        advice="Nothing to do.",
        example="n1:811:902 [0] init.cc:99 NCCL WARN MSCCL++: Cannot enable MSCCL++; environment is"
        " not MSCCL compatible",
    ),
    Signature(
        id="rccl_numa_balancing",
        group="nccl",
        severity="info",
        literals=(b"NUMA auto balancing enabled",),
        pattern=re.compile(r"NUMA auto balancing enabled"),
        title="NUMA balancing of the kernel is on",
        cause="It moves memory between processors while the job runs, which costs speed.",
        advice="The site can turn it off: `sysctl kernel.numa_balancing=0`.",
        example="n1:811:902 [0] init.cc:77 NCCL WARN NUMA auto balancing enabled which can lead to"
        " variability in the RCCL performance!",
    ),
    Signature(
        id="rccl_fine_grain_pcie",
        group="nccl",
        severity="info",
        literals=(b'Missing "HSA_FORCE_FINE_GRAIN_PCIE=1"',),
        pattern=re.compile(r'Missing "HSA_FORCE_FINE_GRAIN_PCIE=1"'),
        title="HSA_FORCE_FINE_GRAIN_PCIE is not set",
        cause="RCCL may be slower between GPUs without links of their own.",
        advice="export HSA_FORCE_FINE_GRAIN_PCIE=1",
        example='n1:811:902 [0] init.cc:78 NCCL WARN Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from'
        " environment",
    ),
    Signature(
        id="nccl_tests_ranks_apart",
        group="nccl",
        severity="warning",
        literals=(b"algbw", b"  Rank "),
        pattern=re.compile(r"(?:size|bytes)\s{1,30}(?:count|N)\s{1,30}type\s"),
        title="Every process of nccl-tests ran a test of its own: nothing between them is measured",
        cause="nccl-tests was built without MPI, or its processes were started without it: each one"
        " lists itself as rank 0. Its busbw is 0.00 and its algbw absurd.",
        advice="Build it with `make MPI=1` and start it with `srun --mpi=pmix` or mpirun.",
        example="#  Rank  0 Group  0 Pid   7001 on  n1 device  0 [0000:1b:00] GPU\n"
        "#  Rank  0 Group  0 Pid   7002 on  n1 device  1 [0000:3d:00] GPU\n"
        "#  size    count    type   redop    root     time   algbw   busbw #wrong",
        sources=("https://github.com/NVIDIA/nccl-tests",),
    ),
    Signature(
        id="nccl_warning",
        group="nccl",
        severity="warning",
        literals=(b" NCCL WARN ",),
        pattern=re.compile(r" NCCL WARN (?P<text>\S[^\n]{0,200})"),
        title="NCCL warns: {text}",
        cause="No warning that the catalogue knows.",
        advice="The last one before an error of NCCL is mostly its cause.",
        example="n1:811:902 [0] graph/topo.cc:50 NCCL WARN Something new",
    ),
)
