"""An operator's reference reaches every process, and whatever is wrong with it leaves the last good copy."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest
from celery.signals import worker_process_init
from django.conf import settings
from prometheus_client import REGISTRY

from hordechat.celery import app
from hordechat.infra import redis
from hordechat.model_reference import published, reference, refresh, source, tasks
from hordechat.model_reference.facts import ModelFacts
from hordechat.model_reference.reference import ProcessCopy
from hordechat.model_reference.source import SourceBroken, SourceUnreachable
from hordechat.settings.env import BadEnvironment, Environment

NOW = datetime(2030, 1, 1, tzinfo=UTC)
OWN = {"own/Model": {"name": "own/Model", "parameters": 5_000_000_000, "nsfw": True, "style": "chat"}}
OWN_FACTS = ModelFacts(parameters=5_000_000_000, is_nsfw=True)
BUNDLED_NAME = "elinas/chronos-70b-v2"


@pytest.fixture(autouse=True)
def nothing_published() -> Iterator[None]:
    redis.marks().delete(published.KEY)
    yield
    redis.marks().delete(published.KEY)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Set the operator's reference."""

    def use_place(place: str) -> None:
        environment: Environment = settings.HORDE.model_copy(update={"text_model_reference": place})
        monkeypatch.setattr(settings, "HORDE", environment)

    return use_place


@pytest.fixture
def file(tmp_path: Path, use: Callable[[str], None]) -> Path:
    path = tmp_path / "models.json"
    path.write_bytes(orjson.dumps(OWN))
    use(str(path))
    return path


def counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("horde_model_reference_refreshes_total", {"outcome": outcome}) or 0


def known_to_a_new_process(name: str) -> ModelFacts | None:
    process = ProcessCopy(place=settings.HORDE.text_model_reference)
    process.take_published()
    return process.find(name)


class Site:
    """A web site that answers every path with the same thing."""

    def __init__(self) -> None:
        self.status, self.content, self.location = 200, orjson.dumps(OWN), ""
        self.pause_seconds = 0.0
        self.calls = 0
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.calls += 1
                self.send_response(site.status)
                if site.location:
                    self.send_header("Location", site.location)
                self.end_headers()
                for start in range(0, len(site.content), 1 << 20):
                    time.sleep(site.pause_seconds)
                    try:
                        self.wfile.write(site.content[start : start + (1 << 20)])
                    except OSError:
                        return

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/models.json"


@contextmanager
def running_site() -> Iterator[Site]:
    made = Site()
    threading.Thread(target=made.server.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as made:
        yield made


def test_the_bundled_reference_is_all_there_is_by_default() -> None:
    tasks.refresh_model_reference()

    assert not redis.marks().exists(published.KEY)
    assert reference.is_known(BUNDLED_NAME)
    assert reference.find("koboldcpp/chronos-70b-v2.Q4_K_M") == ModelFacts(parameters=68_980_000_000)
    assert reference.find_listed_name("koboldcpp/chronos-70b-v2.Q4_K_M") == "elinas/chronos-70b-v2"
    assert not reference.is_known("own/Model")
    reference.start()
    assert reference.is_known(BUNDLED_NAME)


def test_an_operators_file_takes_the_bundled_ones_place(file: Path) -> None:
    assert known_to_a_new_process(BUNDLED_NAME) is not None

    tasks.refresh_model_reference(unknown_keyword=1)

    assert known_to_a_new_process("own/Model") == OWN_FACTS
    assert known_to_a_new_process("koboldcpp/Model-Q4_K_M") == OWN_FACTS
    assert known_to_a_new_process(BUNDLED_NAME) is None


def test_an_operators_url_is_read_after_a_redirect(site: Site, use: Callable[[str], None]) -> None:
    with running_site() as other:
        other.status, other.location, other.content = 302, site.url, b""
        use(other.url)

        refresh.refresh(now=NOW)

    assert known_to_a_new_process("own/Model") == OWN_FACTS


def test_is_read_again_after_an_hour_and_not_before(site: Site, use: Callable[[str], None]) -> None:
    use(site.url)

    for minutes in (0, 1, 59):
        refresh.refresh(now=NOW + timedelta(minutes=minutes))
    assert site.calls == 1

    refresh.refresh(now=NOW + timedelta(minutes=60))
    assert site.calls == 2


def test_is_published_again_when_redis_lost_it(file: Path) -> None:
    refresh.refresh(now=NOW)
    redis.marks().delete(published.KEY)

    refresh.refresh(now=NOW + timedelta(minutes=1))

    assert known_to_a_new_process("own/Model") == OWN_FACTS


def test_another_place_is_read_at_once_and_the_first_ones_copy_not_taken(
    file: Path, site: Site, use: Callable[[str], None]
) -> None:
    refresh.refresh(now=NOW)
    site.content = orjson.dumps({"other/Model": {"parameters": 1}})
    use(site.url)

    assert known_to_a_new_process("own/Model") is None
    refresh.refresh(now=NOW + timedelta(minutes=1))

    assert known_to_a_new_process("other/Model") == ModelFacts(parameters=1)


def test_the_place_is_neither_stored_nor_logged(
    site: Site, use: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    use(site.url.replace("127.0.0.1", "horde:hunter2@127.0.0.1"))
    refresh.refresh(now=NOW)
    site.status = 500
    refresh.refresh(now=NOW + timedelta(hours=2))

    assert "hunter2" not in caplog.text
    assert "hunter2" not in str(redis.marks().hgetall(published.KEY))
    assert known_to_a_new_process("own/Model") == OWN_FACTS


@pytest.mark.parametrize(
    ("status", "content", "outcome", "reason"),
    [
        (500, b"", "unreachable", "it answers with status 500"),
        (404, orjson.dumps(OWN), "unreachable", "it answers with status 404"),
        (200, b"", "broken", "it is not JSON"),
        (200, b'{"a": ', "broken", "it is not JSON"),
        (200, b"\xff", "broken", "it is not JSON"),
        (200, b"[" * 100_000, "broken", "it is not JSON"),
        (200, b"[]", "broken", "it is not a JSON object"),
        (200, b"{}", "broken", "it names no model"),
        (200, b'{"a/b": {"parameters": "7B"}}', "broken", "it names no model"),
        (200, b" " * (source.MAX_BYTES + 1), "broken", "it is larger than 16777216 bytes"),
    ],
)
def test_what_cannot_be_used_leaves_the_last_good_copy(
    site: Site,
    use: Callable[[str], None],
    caplog: pytest.LogCaptureFixture,
    status: int,
    content: bytes,
    outcome: str,
    reason: str,
) -> None:
    use(site.url)
    refresh.refresh(now=NOW)
    site.status, site.content = status, content
    before = counted(outcome)

    refresh.refresh(now=NOW + timedelta(hours=2))

    assert known_to_a_new_process("own/Model") == OWN_FACTS
    assert counted(outcome) == before + 1
    assert reason in caplog.text
    site.status, site.content = 200, orjson.dumps({"new/Model": {"parameters": 1}})
    refresh.refresh(now=NOW + timedelta(hours=2, minutes=1))  # the next run, not the next hour
    assert known_to_a_new_process("new/Model") == ModelFacts(parameters=1)


def test_nobody_listening_is_unreachable(use: Callable[[str], None]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        use(f"http://127.0.0.1:{free.getsockname()[1]}/")
        before = counted("unreachable")

        refresh.refresh(now=NOW)

    assert counted("unreachable") == before + 1
    assert known_to_a_new_process(BUNDLED_NAME) is not None


def test_a_site_that_goes_on_slowly_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "WHOLE_READ_SECONDS", 0.2)
    site.content, site.pause_seconds = b" " * (5 << 20), 0.1

    with pytest.raises(SourceUnreachable, match="takes longer"):
        source.read(site.url)


def test_a_site_that_leads_elsewhere_for_ever_is_given_up(site: Site) -> None:
    site.status, site.location = 302, site.url

    with pytest.raises(SourceUnreachable, match="TooManyRedirects"):
        source.read(site.url)
    assert site.calls == source.MAX_REDIRECTS + 1


def test_a_site_leads_to_no_file(site: Site, file: Path) -> None:
    site.status, site.location = 302, file.as_uri()

    with pytest.raises(SourceUnreachable):
        source.read(site.url)


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_path_without_a_file_is_unreachable(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceUnreachable, match="there is no such file"):
        source.read(str(tmp_path / name))


def test_a_file_is_read_no_further_than_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(10 * source.MAX_BYTES)

    with pytest.raises(SourceBroken, match="larger"):
        source.read(str(path))


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("a/b", None),
        ("a/b", 7),
        ("a/b", []),
        ("a/b", {}),
        ("a/b", {"parameters": None}),
        ("a/b", {"parameters": True}),
        ("a/b", {"parameters": 7.5}),
        ("a/b", {"parameters": "7000000000"}),
        ("a/b", {"parameters": 0}),
        ("a/b", {"parameters": -1}),
        ("a/b", {"parameters": 10**14 + 1}),
        ("a/b", {"parameters": 1, "nsfw": "no"}),
        ("", {"parameters": 1}),
        ("a" * 256, {"parameters": 1}),
        ("a\0b", {"parameters": 1}),
    ],
)
def test_an_entry_that_is_no_model_is_left_out_alone(name: str, entry: object) -> None:
    reading = source.parse(orjson.dumps({**OWN, name: entry}))

    assert reading.models == {"own/Model": OWN_FACTS}
    assert reading.refused_names == (name,)


@pytest.mark.parametrize("number", ["1" + "0" * 30, "1e400", "NaN"])
def test_a_number_beyond_all_bounds_is_no_size(number: str) -> None:
    with pytest.raises(SourceBroken):
        source.parse(f'{{"a/b": {{"parameters": {number}}}}}')


def test_entries_left_out_are_counted_and_some_are_named(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.write_bytes(orjson.dumps({**OWN, **{f"bad\n{index}": None for index in range(5)}}))
    before = REGISTRY.get_sample_value("horde_model_reference_refused_entries_total") or 0

    refresh.refresh(now=NOW)

    assert REGISTRY.get_sample_value("horde_model_reference_refused_entries_total") == before + 5
    assert r"has 5 entries that are no models: 'bad\n0', 'bad\n1', 'bad\n2'" in caplog.text
    assert known_to_a_new_process("own/Model") == OWN_FACTS


def test_what_is_published_reads_back_as_it_was() -> None:
    models = {"a/b": ModelFacts(parameters=1), "ü/☃": ModelFacts(parameters=10**14, is_nsfw=True)}

    assert source.parse(source.dump(models)).models == models


def wait_until_known(process: ProcessCopy, name: str) -> None:
    give_up_at = time.monotonic() + 10
    while process.find(name) is None:
        assert time.monotonic() < give_up_at, "the process never took the published copy"
        time.sleep(0.01)


def test_a_running_process_looks_again_by_itself(file: Path) -> None:
    process = ProcessCopy(place=str(file))
    process.take_published()
    refresh.refresh(now=NOW)
    assert process.find("own/Model") is None  # it looked a moment ago

    process._look_again_at = 0.0

    wait_until_known(process, "own/Model")


def test_a_celery_process_knows_the_published_copy_from_its_start(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refresh.refresh(now=NOW)
    monkeypatch.setattr(reference, "_copy", ProcessCopy(place=str(file)))

    app.loader.import_default_modules()
    worker_process_init.send(sender=None)

    assert reference.find_listed_name("koboldcpp/Model-Q4") == "own/Model"


@contextmanager
def redis_at(url: str, *, timeout_milliseconds: int = 50) -> Iterator[None]:
    """Let this process use another Redis for a while."""
    changes = {"redis_url": url, "redis_timeout_milliseconds": timeout_milliseconds}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "HORDE", settings.HORDE.model_copy(update=changes))
        redis._client.cache_clear()
        yield
    redis._client.cache_clear()
    redis.breaker.reset()


def test_a_lookup_does_not_wait_for_a_redis_that_hangs(file: Path) -> None:
    process = ProcessCopy(place=str(file))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with redis_at(f"redis://127.0.0.1:{listener.getsockname()[1]}", timeout_milliseconds=20_000):
            started_at = time.monotonic()

            assert process.find(BUNDLED_NAME) is not None

            assert time.monotonic() - started_at < 10
            asked, _ = listener.accept()  # the thread did ask
            asked.close()


def test_a_process_keeps_its_copy_while_redis_is_gone(file: Path) -> None:
    refresh.refresh(now=NOW)
    process = ProcessCopy(place=str(file))
    process.take_published()
    before = counted("published")

    with redis_at("unix:///nowhere/redis.sock"):
        process.take_published()
        refresh.refresh(now=NOW + timedelta(hours=2))

        assert process.find("own/Model") == OWN_FACTS
        assert known_to_a_new_process(BUNDLED_NAME) is not None
    assert counted("published") == before


def test_a_process_does_not_take_what_it_cannot_read(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    refresh.refresh(now=NOW)
    process = ProcessCopy(place=str(file))
    process.take_published()
    redis.marks().hset(published.KEY, mapping={"version": "new", "models": "{"})

    with caplog.at_level(logging.WARNING):
        process.take_published()

    assert process.find("own/Model") == OWN_FACTS
    assert "cannot be used" in caplog.text


def load(place: str) -> Environment:
    required = {
        "DATABASE_URL": "postgresql://horde@db/horde",
        "REDIS_URL": "redis://cache",
        "HORDE_SECRET_KEY": "x" * 32,
        "HORDE_API_KEY_PEPPERS": "a:" + "x" * 32,
    }
    return Environment.load({**required, "HORDE_IMAGE_LLM_REFERENCE": place})


@pytest.mark.parametrize("place", ["", "https://models.example/db.json", "http://[::1]:8080/a?b=c", "/etc/models.json"])
def test_the_setting_takes_a_url_or_a_path(place: str) -> None:
    assert load(place).text_model_reference == place


@pytest.mark.parametrize(
    "place", ["models.json", "./models.json", "file:///etc/models.json", "ftp://models.example/a", "https://", "http:a"]
)
def test_the_setting_refuses_anything_else(place: str) -> None:
    with pytest.raises(BadEnvironment) as stopped:
        load(place)

    assert "HORDE_IMAGE_LLM_REFERENCE: has to be an http(s) URL or the absolute path of a file." in str(
        stopped.value.code
    )
