"""Report -> text; one module per format, each with `render(report)`."""
