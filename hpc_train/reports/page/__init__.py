"""The parts of the HTML page; `render.page` puts them together.

Here: the data and the template of the page.
Not here: drawing of figures (`reports.figures`).
"""
