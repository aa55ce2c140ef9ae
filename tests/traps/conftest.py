"""Fixtures of the scripts and of a Slurm in small."""

from __future__ import annotations

from tests.scripts.conftest import Execute, execute
from tests.slurm.conftest import fake, slurm

__all__ = ["Execute", "execute", "fake", "slurm"]
