"""Results that hpctrain did not make, in logs, records or tables: what stands in them."""
