"""Live Slurm and machine -> `Cluster`, `Hardware`, a draft of a profile."""
