"""Composition of the stages: one module per task of the user."""
