"""Job and study files -> JobSpec and Study."""
