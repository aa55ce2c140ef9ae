"""Runs: the folders that hold everything that is known of a job."""
