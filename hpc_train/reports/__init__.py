"""DataFrames -> Report -> text, Markdown, CSV, JSON and figures."""
