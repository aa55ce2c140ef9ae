"""Live Slurm and machine -> what they have: `Cluster`, `Hardware`, a draft of a profile."""
