"""Job and study files -> JobSpec and Study.

Here: decoding of files and options of the command line, and expansion of a study's grid.
Not here: defaults that depend on a site (`plans`).
"""
