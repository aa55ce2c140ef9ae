"""A small PBS on this machine, for tests and to try a job: it needs no root and no installation.

Here: a server that runs scripts on nodes that are names on this machine, answers as OpenPBS 23.06
does, and refuses what that refuses.
Not here: submission of jobs of hpctrain (`submissions.pbs`); a real Slurm (`lab`).
"""
