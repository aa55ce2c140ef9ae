"""Foreign results in logs, records or tables."""
