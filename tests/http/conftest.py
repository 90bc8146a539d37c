"""A real server on a database of its own, for tests that speak HTTP over sockets."""

import os
from collections.abc import Iterator

import pytest

from hordechat.local import stack
from tests import services
from tests.http.wire import Site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    log = tmp_path_factory.mktemp("api") / "log"
    url = services.clone_for("http")
    try:
        environment = {"DATABASE_URL": url, "REDIS_URL": os.environ["REDIS_URL"], "HORDE_NODE_NAME": "node-one"}
        with stack.api(environment, workers=1, threads=2, log=log) as api:
            yield Site(api=api, database_url=url, environment=environment, log=log)
    finally:
        services.drop(url)
