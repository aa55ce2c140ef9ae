"""Records -> DataFrames: one row per run, then one row per point; no clock, no environment."""
