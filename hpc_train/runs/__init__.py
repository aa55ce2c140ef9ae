"""Run folders: all files of a run."""
