"""The fixture of profiles that `hpctrain site` is tested with."""

from tests.pipeline.site.conftest import profiles

__all__ = ["profiles"]
