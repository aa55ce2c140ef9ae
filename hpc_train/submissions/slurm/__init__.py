"""Executor `slurm`: scripts -> sbatch; squeue, sacct and scancel after."""
