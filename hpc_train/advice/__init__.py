"""Program and machine -> which strategies fit, what a step takes within bounds, and what it costs.

Here: formulas of memory, traffic and time, and the verdict on each strategy and size.
Not here: where the values come from (`sites`, `jobs`, `scaling`), tables for people (`reports`).
"""
