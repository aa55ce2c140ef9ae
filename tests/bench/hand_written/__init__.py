"""Trainings as the tutorials of PyTorch write them, to compare the reference trainer with."""
