"""Catalogue of what goes wrong in a training job, and how logs say so."""
