"""Records -> DataFrames: one row per run, then one row per point; no clock, no environment.

Here: values of runs, statistics, speedup and its intervals, fits; only `scaling` and `trainer`
use numpy, only `scaling` uses pandas and scipy.
Not here: rounding, headings and texts (`reports`).
"""
