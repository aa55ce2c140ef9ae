"""Transport: where its facts stand."""

from __future__ import annotations

from hpc_train.model.transport import Transport


def test_places_are_those_of_the_kinds_that_were_seen_in_the_order_asked() -> None:
    facts = Transport(first={"network": "log:3", "plugin": "log:7", "speed": "log:9"})
    assert facts.places("plugin", "gdr refused", "network") == ("log:7", "log:3")
