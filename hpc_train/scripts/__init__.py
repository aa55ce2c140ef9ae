"""LaunchPlan -> Script; deterministic, through one quoting filter."""
