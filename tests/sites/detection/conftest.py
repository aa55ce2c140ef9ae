"""The fixture of profiles that `hpctrain site` is tested with."""

from tests.machine.site.conftest import profiles

__all__ = ["profiles"]
