"""Pages are shown by the live site of the end-to-end tests."""

from tests.e2e.conftest import live, live_environment

__all__ = ["live", "live_environment"]
