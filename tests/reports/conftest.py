"""One browser for all tests of the page."""

from collections.abc import Iterator

import pytest

from tests.reports.chromium import Tab, browser


@pytest.fixture(scope="session")
def one_tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture
def tab(one_tab: Tab) -> Iterator[Tab]:
    """Return the tab, on the screen and in light colours, with nothing asked for."""
    one_tab.medium()
    one_tab.requests.clear()
    one_tab.complaints.clear()
    yield one_tab
    one_tab.call("Emulation.setScriptExecutionDisabled", value=False)
