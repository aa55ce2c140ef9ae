"""Executor `pbs`: scripts -> qsub; qstat, qhold and qdel after.

Here: calls of the commands of PBS Professional and OpenPBS for jobs of hpctrain, and the meaning of
their answers.
Not here: directives in a script (`plans`).
"""
