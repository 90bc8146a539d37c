"""Images: where they may stand, what a URL may be, and how much of them a body may hold."""

from typing import Any

import pytest

from hordechat.contract import chat
from hordechat.contract.chat.images import estimate_bytes
from hordechat.errors import ErrorCode
from tests.contract.bodies import BODY, bad, image, parse, refuse, said, unsupported

MEBIBYTE = 1024 * 1024
TEXT = {"type": "text", "text": "a"}
NO_URL = "'messages[0].content[0].image_url.url' has to be a 'data:image/...;base64,' URL or an http or https URL."


def showing(*parts: object) -> list[dict[str, object]]:
    return [{"role": "user", "content": list(parts)}]


def data_url(decoded_bytes: int) -> str:
    """Return the URL of an image of this size."""
    whole, rest = divmod(decoded_bytes, 3)
    return "data:image/png;base64," + "AAAA" * whole + {0: "", 1: "AA==", 2: "AAA="}[rest]


@pytest.mark.spec("IMG-01", "IMG-03")
@pytest.mark.parametrize("members", [{}, {"detail": "auto"}, {"detail": "low"}, {"detail": "high"}])
def test_keeps_an_image_part_as_it_was_sent(members: dict[str, Any]) -> None:
    sent = showing(TEXT, image(**members), image("https://example.org/cat.jpg", **members))

    assert [message.as_json() for message in parse(messages=sent).messages] == sent
    assert parse(messages=sent).messages[0].image_count == 2


@pytest.mark.spec("IMG-02")
@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64,aGVsbG8=",
        "data:image/svg+xml;charset=utf-8;base64,aGVsbG8=",
        "DATA:IMAGE/JPEG;BASE64,aGVsbG8=",
        "data:image/png;base64,",
        "http://example.org",
        "https://example.org/cat.jpg?size=1#top",
        "HTTPS://[2001:db8::1]:8443/cat.jpg",
        "http://user:secret@example.org/",
    ],
)
def test_takes_a_data_url_of_an_image_and_a_web_url(url: str) -> None:
    assert parse(messages=showing(image(url))).messages[0].image_count == 1


@pytest.mark.spec("IMG-76")
@pytest.mark.parametrize(
    "url",
    [
        "",
        "cat.jpg",
        "//example.org/cat.jpg",
        "ftp://example.org/cat.jpg",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http:",
        "http://",
        "https:///cat.jpg",
        "http://?a",
        " https://example.org",
        "xhttps://example.org",
        "data:",
        "data:,a",
        "data:image/png,a",
        "data:image/png;base64",
        "data:image/;base64,a",
        "data:text/plain;base64,aGVsbG8=",
        "data:application/pdf;base64,aGVsbG8=",
        "data:image/png;base64 ,aGVsbG8=",
        "data:image/png;charset=utf-8,aGVsbG8=",
        "data:base64,image/png",
    ],
)
def test_refuses_a_url_of_another_form(url: str) -> None:
    assert said(refuse(messages=showing(image(url)))) == bad(NO_URL)


@pytest.mark.spec("IMG-74", "IMG-75")
@pytest.mark.parametrize(
    ("part", "refusal"),
    [
        ({"type": "image_url"}, bad("'messages[0].content[0].image_url' has to be an object.")),
        (
            {"type": "image_url", "image_url": "https://example.org"},
            bad("'messages[0].content[0].image_url' has to be an object."),
        ),
        ({"type": "image_url", "image_url": []}, bad("'messages[0].content[0].image_url' has to be an object.")),
        (
            {"type": "image_url", "image_url": None},
            bad("'messages[0].content[0].image_url' has to be an object."),
        ),
        (
            {"type": "image_url", "image_url": {}},
            bad("'messages[0].content[0].image_url.url' has to be a string."),
        ),
        (
            {"type": "image_url", "image_url": {"url": 1}},
            bad("'messages[0].content[0].image_url.url' has to be a string."),
        ),
        ({**image(), "text": "a"}, unsupported("messages[0].content[0].text")),
        (image(format="png"), unsupported("messages[0].content[0].image_url.format")),
        *[
            (
                image(detail=detail),
                bad("'messages[0].content[0].image_url.detail' has to be one of auto, low, high."),
            )
            for detail in ("", "HIGH", "original", None, 1, ["low"])
        ],
    ],
)
def test_refuses_a_broken_image_part_with_its_path(part: object, refusal: tuple[str, str]) -> None:
    assert said(refuse(messages=showing(part))) == refusal


@pytest.mark.spec("IMG-06", "IMG-07", "IMG-08", "IMG-78")
def test_takes_20_images_of_all_messages_together_and_no_more() -> None:
    ten = showing(*[image()] * 10)

    assert sum(message.image_count for message in parse(messages=ten * 2).messages) == 20
    assert said(refuse(messages=[*ten, *ten, *showing(TEXT, image("http://example.org"))])) == (
        "TooManyExtraSourceImages",
        "messages holds more than 20 images.",
    )


@pytest.mark.spec("IMG-18")
@pytest.mark.parametrize("decoded_bytes", [0, 1, 2, 3, 4, 1000, 1001, 1002])
def test_estimates_a_size_by_the_length_of_its_payload(decoded_bytes: int) -> None:
    assert estimate_bytes(data_url(decoded_bytes)) == decoded_bytes
    assert estimate_bytes(data_url(decoded_bytes).rstrip("=")) == decoded_bytes


@pytest.mark.spec("IMG-18")
@pytest.mark.parametrize(
    ("payload", "estimate"), [("=", 0), ("==", 0), ("====", 1), ("@@@@", 3), ("AA A\nA=", 4), ("AAAA" * 3, 9)]
)
def test_estimates_without_decoding(payload: str, estimate: int) -> None:
    assert estimate_bytes("data:image/png;base64," + payload) == estimate


@pytest.mark.spec("IMG-18")
def test_an_image_to_fetch_counts_nothing_yet() -> None:
    assert estimate_bytes("https://example.org/" + "a" * 100) == 0


@pytest.mark.spec("IMG-77", "IMG-78")
def test_takes_an_image_of_5_mebibytes_and_no_more() -> None:
    assert parse(messages=showing(image(data_url(5 * MEBIBYTE)))).messages[0].image_count == 1
    assert said(refuse(messages=showing(TEXT, image(data_url(5 * MEBIBYTE + 1))))) == (
        "SourceImageSizeExceeded",
        "'messages[0].content[1].image_url.url' holds an image of 5242881 bytes, and 5242880 is the most.",
    )


@pytest.mark.spec("IMG-17", "IMG-77")
def test_takes_25_mebibytes_of_images_and_no_more() -> None:
    large = image(data_url(5 * MEBIBYTE))
    sent = [*showing(large, large), *showing(large, large, large)]

    assert len(parse(messages=sent).messages) == 2
    assert said(refuse(messages=[*sent, *showing(image(data_url(1)))])) == (
        "SourceImageSizeExceeded",
        "messages holds images of 26214401 bytes together, and 26214400 is the most.",
    )


@pytest.mark.spec("IMG-78")
def test_images_are_counted_after_the_messages_and_before_the_tools() -> None:
    many = showing(*[image()] * 21)

    assert refuse(messages=[*many, {"role": "function"}]).code is ErrorCode.UNSUPPORTED_CHAT_PARAMETER
    assert refuse(messages=many, tools=[1]).code is ErrorCode.TOO_MANY_EXTRA_SOURCE_IMAGES


def test_an_image_comes_back_in_a_dump() -> None:
    sent = {**BODY, "messages": showing(image(detail="low"))}

    assert chat.dump(chat.parse(sent))["messages"] == sent["messages"]
