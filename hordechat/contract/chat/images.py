"""Images inside messages: the forms of their URLs, and their sizes as far as a body tells them."""

import re
from collections.abc import Iterable
from typing import Literal

from hordechat.contract.chat.submission import ImageDetail, ImagePart, JsonObject, Message
from hordechat.contract.chat.values import below, read_object, read_string, refuse_unknown_keys
from hordechat.contract.limits import MAX_CHAT_IMAGE_BYTES, MAX_CHAT_IMAGE_COUNT, MAX_CHAT_IMAGE_TOTAL_BYTES
from hordechat.contract.refusals import BadRequest, ClosedModel, SourceImageSizeExceeded, TooManyExtraSourceImages

# Bounded in each piece: a URL may be as long as a body.
_DATA_URL = re.compile(r"data:image/[a-z0-9!#$&^_.+-]{1,127}(?:;[^;,\s]{1,127}){0,4};base64,", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://[^\s/?#]", re.IGNORECASE)


class ImageUrlBody(ClosedModel):
    """Where an image is, and how closely to look at it."""

    url: str
    detail: ImageDetail = ImageDetail.AUTO


class ImagePartBody(ClosedModel):
    """An image inside a user message: a `data:image/...;base64,` URL or an http(s) URL."""

    type: Literal["image_url"]
    image_url: ImageUrlBody


def read_image_part(path: str, part: JsonObject) -> ImagePart:
    """Return the image a part holds; nothing is decoded or fetched (IMG-74..76, IMG-78)."""
    refuse_unknown_keys(path, part, known=ImagePartBody.model_fields)
    image_path = below(path, "image_url")
    image = read_object(image_path, part.get("image_url"))
    refuse_unknown_keys(image_path, image, known=ImageUrlBody.model_fields)
    url = read_string(f"{image_path}.url", image.get("url"))
    if not (_DATA_URL.match(url) or _WEB_URL.match(url)):
        raise BadRequest(f"'{image_path}.url' has to be a 'data:image/...;base64,' URL or an http or https URL.")
    if estimate_bytes(url) > MAX_CHAT_IMAGE_BYTES:
        raise SourceImageSizeExceeded(
            f"'{image_path}.url' holds an image of {estimate_bytes(url)} bytes, and {MAX_CHAT_IMAGE_BYTES} is the most."
        )
    return ImagePart(url=url, detail=_read_detail(f"{image_path}.detail", image) if "detail" in image else None)


def _read_detail(path: str, image: JsonObject) -> ImageDetail:
    detail = image["detail"]
    if not isinstance(detail, str) or detail not in set(ImageDetail):
        raise BadRequest(f"'{path}' has to be one of " + ", ".join(ImageDetail) + ".")
    return ImageDetail(detail)


def estimate_bytes(url: str) -> int:
    """Return the decoded size of a data URL's image, by the length of its payload alone; 0 for a URL to fetch.

    Every character after the comma counts, so line breaks inside the payload make an image larger (IMG-18).
    """
    header = _DATA_URL.match(url)
    if header is None:
        return 0
    padding = 2 if url.endswith("==") else 1 if url.endswith("=") else 0
    return max((len(url) - header.end()) * 3 // 4 - padding, 0)


def check_images(messages: Iterable[Message]) -> None:
    """Hold the images of all messages to their count and their total (IMG-06..08, IMG-17)."""
    images = [
        part
        for message in messages
        if isinstance(message.content, tuple)
        for part in message.content
        if isinstance(part, ImagePart)
    ]
    if len(images) > MAX_CHAT_IMAGE_COUNT:
        raise TooManyExtraSourceImages(f"messages holds more than {MAX_CHAT_IMAGE_COUNT} images.")
    total_bytes = sum(estimate_bytes(image.url) for image in images)
    if total_bytes > MAX_CHAT_IMAGE_TOTAL_BYTES:
        raise SourceImageSizeExceeded(
            f"messages holds images of {total_bytes} bytes together, and {MAX_CHAT_IMAGE_TOTAL_BYTES} is the most."
        )
