"""Any job script -> errors, their reasons, and what to write instead."""
