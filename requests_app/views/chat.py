"""Chat requests over HTTP: submit, status, cancel."""

from http import HTTPStatus

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from hordechat.contract import chat
from hordechat.contract.chat import ChatBody
from hordechat.contract.limits import MAX_CHAT_BODY_BYTES
from hordechat.contract.status import ChatStatus, QuotedAnswer, ResolvedRequest, SubmittedAnswer, UnqueuedAnswer
from hordechat.errors import ErrorCode
from hordechat.http import body, headers
from hordechat.http.documents import documented
from hordechat.infra import clock
from requests_app.errors import RequestNotFound
from requests_app.rules import contract_page, served
from requests_app.selectors import status
from requests_app.services import cancel, intake
from requests_app.views.ids import parse_request_id


class ChatSubmitViewSet(ViewSet):
    """`generate/chat/async`."""

    @documented(
        tag="chat",
        body=ChatBody,
        answers=SubmittedAnswer,
        status=HTTPStatus.ACCEPTED,
        needs_key=True,
        others={HTTPStatus.OK: UnqueuedAnswer},
        refusals=tuple(contract_page.CODES),
    )
    def create(self, request: Request) -> Response:
        """Queue a chat request.

        A repeated `horde.operation_key` answers 200 with the first request's id; `horde.dry_run` answers 200 with what
        the request would cost, and queues nothing.
        """
        sent = body.read_object(request, limit_bytes=MAX_CHAT_BODY_BYTES)
        submission = served.require_served(chat.parse(sent))
        result = intake.submit_chat(
            api_key=headers.get_api_key(request),
            submission=submission,
            address=headers.find_client_address(request),
            client_agent=headers.get_client_agent(request),
            now=clock.now(),
        )
        if isinstance(result, intake.Quoted):
            resolved = ResolvedRequest(context_fit=result.context_fit)
            quoted = QuotedAnswer(
                kudos=float(result.quote), estimated_prompt_tokens=result.prompt_tokens, resolved=resolved
            )
            return Response(quoted.model_dump())
        if isinstance(result, intake.Repeated):
            return Response({"id": str(result.id), "kudos": float(result.quote)})
        answer = SubmittedAnswer(id=str(result.id), kudos=float(result.quote), message=result.warning)
        return Response(answer.model_dump(exclude_none=True), status=HTTPStatus.ACCEPTED)


class ChatStatusViewSet(ViewSet):
    """`generate/chat/status/{id}`; knowing the id is the only credential (RTE-32)."""

    @documented(tag="chat", answers=ChatStatus, refusals=(ErrorCode.REQUEST_NOT_FOUND,))
    def retrieve(self, request: Request, request_id: str) -> Response:  # noqa: ARG002
        """Read how far a chat request has come, with every finished generation."""
        found = status.find_chat(request_id=parse_request_id(request_id), now=clock.now())
        if found is None:
            raise RequestNotFound(request_id=request_id)
        return Response(found.model_dump())

    @documented(tag="chat", answers=ChatStatus, refusals=(ErrorCode.REQUEST_NOT_FOUND,))
    def destroy(self, request: Request, request_id: str) -> Response:  # noqa: ARG002
        """Cancel what still waits of a chat request; the answer is its status as it was just before."""
        return Response(cancel.cancel_chat(request_id=parse_request_id(request_id), now=clock.now()).model_dump())
