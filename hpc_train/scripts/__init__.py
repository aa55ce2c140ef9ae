"""LaunchPlan -> Script; deterministic, through one quoting filter.

Here: finding and rendering templates; only `scripts` and the page of a report use jinja2.
Not here: decisions (`plans`), the text of the scripts (`templates/`).
"""
