"""The parts of the HTML page; `whole.page` puts them together."""
