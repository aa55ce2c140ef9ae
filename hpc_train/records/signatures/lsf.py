"""Signatures of LSF: the report that it writes below the output of a job."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_BHIST = ("https://www.ibm.com/docs/en/spectrum-lsf/10.1.0?topic=variables-termination-reasons",)

LSF = (
    Signature(
        id="lsf_memory_limit",
        group="lsf",
        severity="fatal",
        literals=(b"TERM_MEMLIMIT: ", b"TERM_SWAP: "),
        pattern=re.compile(r"^TERM_(?:MEMLIMIT|SWAP): job killed after reaching LSF \w+ usage"),
        title="LSF killed the job, which used more memory of the host than it had asked for",
        cause="More memory than `-M` or `rusage[mem=...]` states, in all processes together.",
        advice='More memory (`-M`, `-R "rusage[mem=...]"`), fewer workers of the DataLoader; `Max'
        " Memory` in the report says how much it was.",
        example="TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.",
        sources=_BHIST,
    ),
    Signature(
        id="lsf_time_limit",
        group="lsf",
        severity="fatal",
        literals=(b"TERM_RUNLIMIT: ",),
        pattern=re.compile(r"^TERM_RUNLIMIT: job killed after reaching LSF run time limit"),
        title="The job ran into its time limit",
        cause="It needs more time than `-W` states, or it stood still.",
        advice="Look whether the last steps were as fast as the others; a longer `-W`, and"
        " checkpoints to go on from.",
        example="TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
        sources=_BHIST,
    ),
    Signature(
        id="lsf_killed",
        group="lsf",
        severity="fatal",
        literals=(b"TERM_OWNER: ", b"TERM_ADMIN: "),
        pattern=re.compile(
            r"^TERM_(?:OWNER|ADMIN): job killed by (?P<who>owner|root or LSF administrator)"
        ),
        title="The job was killed by its {who}",
        cause="Somebody called `bkill`.",
        advice="`bhist -l JOB` says who, and when.",
        example="TERM_OWNER: job killed by owner.",
        sources=_BHIST,
    ),
    Signature(
        id="lsf_exit",
        group="lsf",
        severity="fatal",
        literals=(b"Exited with exit code ",),
        # 130 and 143 are those of a job that was told to end.
        pattern=re.compile(r"^Exited with exit code (?!130\.|143\.)(?P<exitcode>\d{1,3})\.$"),
        title="LSF reports that the job ended with exit code {exitcode}",
        cause="The last command of the job script failed.",
        advice="Read the error above the report, and the file of `-e`.",
        example="Exited with exit code 1.",
        sources=_BHIST,
    ),
)
