"""Text requests over HTTP: submit, status, cancel, the stored input."""

from http import HTTPStatus

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from hordechat.contract import text_request
from hordechat.contract.limits import MAX_TEXT_BODY_BYTES
from hordechat.contract.status import (
    QuotedTextAnswer,
    ResolvedTextRequest,
    StoredTextRequest,
    SubmittedAnswer,
    TextStatus,
)
from hordechat.contract.text_request import TextBody
from hordechat.errors import ErrorCode
from hordechat.http import body, headers
from hordechat.http.documents import documented
from hordechat.infra import clock
from requests_app.errors import RequestNotFound
from requests_app.rules import contract_page
from requests_app.selectors import status, stored_text
from requests_app.services import cancel, intake, text_intake
from requests_app.views.ids import parse_request_id


class TextSubmitViewSet(ViewSet):
    """`generate/text/async`."""

    @documented(
        tag="text",
        body=TextBody,
        answers=SubmittedAnswer,
        status=HTTPStatus.ACCEPTED,
        needs_key=True,
        others={HTTPStatus.OK: QuotedTextAnswer},
        refusals=tuple(contract_page.TEXT_CODES),
    )
    def create(self, request: Request) -> Response:
        """Queue a text request; `dry_run` answers 200 with what it would cost, and queues nothing."""
        sent = text_request.parse(body.read_object(request, limit_bytes=MAX_TEXT_BODY_BYTES))
        result = text_intake.submit_text(
            api_key=headers.get_api_key(request),
            body=sent,
            address=headers.find_client_address(request),
            client_agent=headers.get_client_agent(request),
            now=clock.now(),
        )
        if isinstance(result, text_intake.QuotedText):
            resolved = ResolvedTextRequest(
                prompt=sent.prompt,
                params=sent.params.model_dump(exclude_unset=True)
                | {"max_context_length": result.sized.max_context_length},
                models=sent.models,
                estimated_prompt_tokens=result.sized.prompt_tokens,
                context_fit=sent.context_fit,
            )
            return Response(QuotedTextAnswer(kudos=float(result.quote), resolved=resolved).model_dump())
        answer = SubmittedAnswer(
            id=str(result.id),
            kudos=float(result.quote),
            message=None if result.is_servable else intake.NOBODY_CAN_SERVE,
        )
        return Response(answer.model_dump(exclude_none=True), status=HTTPStatus.ACCEPTED)


class TextStatusViewSet(ViewSet):
    """`generate/text/status/{id}`; knowing the id is the only credential."""

    @documented(tag="text", answers=TextStatus, refusals=(ErrorCode.REQUEST_NOT_FOUND,))
    def retrieve(self, request: Request, request_id: str) -> Response:  # noqa: ARG002
        """Read how far a text request has come, with every finished generation."""
        found = status.find_text(request_id=parse_request_id(request_id), now=clock.now())
        if found is None:
            raise RequestNotFound(request_id=request_id)
        return Response(found.model_dump())

    @documented(tag="text", answers=TextStatus, refusals=(ErrorCode.REQUEST_NOT_FOUND,))
    def destroy(self, request: Request, request_id: str) -> Response:  # noqa: ARG002
        """Cancel what still waits of a text request; the answer is its status as it was just before."""
        return Response(cancel.cancel_text(request_id=parse_request_id(request_id), now=clock.now()).model_dump())


class StoredTextViewSet(ViewSet):
    """`generate/text/request/{id}`."""

    @documented(
        tag="text",
        answers=StoredTextRequest,
        needs_key=True,
        refusals=(ErrorCode.REQUEST_NOT_FOUND, ErrorCode.INVALID_API_KEY, ErrorCode.WRONG_CREDENTIALS),
    )
    def retrieve(self, request: Request, request_id: str) -> Response:
        """Read a text request as it was submitted, under the key it was submitted under."""
        found = stored_text.get(request_id=parse_request_id(request_id), api_key=headers.get_api_key(request))
        return Response(found.model_dump(), headers={"Cache-Control": "private, no-store"})
