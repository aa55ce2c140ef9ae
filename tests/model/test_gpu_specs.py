"""The power limit of a GPU is that of its variant with the highest one, or not known."""

from __future__ import annotations
