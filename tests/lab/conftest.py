"""The fixtures of a lab are in tests/conftest.py; here are their types, by the folder's name."""

from tests.conftest import Hpctrain, Slurm

__all__ = ["Hpctrain", "Slurm"]
