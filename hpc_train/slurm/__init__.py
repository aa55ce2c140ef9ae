"""Executor `slurm`: scripts -> sbatch; squeue, sacct and scancel after.

Here: calls of Slurm's commands for jobs of hpctrain, and the meaning of their answers.
Not here: partitions and nodes of a cluster (`machine`), options of sbatch in a script (`plans`).
"""
