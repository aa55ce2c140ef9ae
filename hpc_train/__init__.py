"""hpctrain: job scripts, site profiles and scaling reports for distributed PyTorch on Slurm."""

__version__ = "0.1.0"
