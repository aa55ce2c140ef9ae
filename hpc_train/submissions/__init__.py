"""From prepared jobs to submitted runs, and back: submit, retry, follow, explain."""
