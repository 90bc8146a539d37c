"""What workers call: pop and submit."""

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from hordechat.contract import pop as pop_contract
from hordechat.contract import submit as submit_contract
from hordechat.contract.limits import MAX_BODY_BYTES, MAX_REPLY_BODY_BYTES
from hordechat.contract.pop import TEXT_PAYLOAD_DEFAULTS, ChatPopAnswer, PopAnswer, PopBody
from hordechat.contract.submit import SubmitAnswer, SubmitBody
from hordechat.errors import ErrorCode
from hordechat.http import body, headers
from hordechat.http.documents import documented
from hordechat.infra import clock
from requests_app.services import pop, submit
from requests_app.services.pop import Popped


class PopViewSet(ViewSet):
    """`generate/text/pop`."""

    @documented(
        tag="workers",
        body=PopBody,
        answers=PopAnswer,
        needs_key=True,
        refusals=(
            ErrorCode.BAD_REQUEST,
            ErrorCode.CHAT_DECLARATION_INVALID,
            ErrorCode.NUL_BYTE_IN_PAYLOAD,
            ErrorCode.INVALID_API_KEY,
            ErrorCode.ANONYMOUS_FORBIDDEN_WORKER,
            ErrorCode.WRONG_CREDENTIALS,
            ErrorCode.REQUEST_TOO_LARGE,
        ),
    )
    def create(self, request: Request) -> Response:
        """Declare what a worker serves, and take its next job."""
        declared = pop_contract.parse(body.read_object(request, limit_bytes=MAX_BODY_BYTES))
        popped = pop.assign_next(
            api_key=headers.get_api_key(request), pop=declared, address=headers.find_address(request), now=clock.now()
        )
        return Response(_answer_of(popped).model_dump())


def _answer_of(popped: Popped) -> PopAnswer:
    assignment = popped.assignment
    if assignment is None:
        return PopAnswer(
            payload=dict(TEXT_PAYLOAD_DEFAULTS),
            skipped=dict(popped.skipped),
            messages=[dict(told) for told in popped.messages],
        )
    ids = [str(generation_id) for generation_id in assignment.generation_ids]
    answer = ChatPopAnswer if assignment.is_chat else PopAnswer
    return answer(
        id=ids[0],
        ids=ids,
        payload=dict(assignment.payload),
        messages=[dict(told) for told in popped.messages],
        model=assignment.model,
        ttl=assignment.lease_seconds,
    )


class SubmitViewSet(ViewSet):
    """`generate/text/submit`."""

    @documented(
        tag="workers",
        body=SubmitBody,
        answers=SubmitAnswer,
        needs_key=True,
        refusals=(
            ErrorCode.BAD_REQUEST,
            ErrorCode.CHAT_SUBMIT_INVALID,
            ErrorCode.CHAT_SUBMIT_NONCONFORMANT,
            ErrorCode.CHAT_MODEL_MISMATCH,
            ErrorCode.DUPLICATE_GENERATION,
            ErrorCode.ABORTED_GENERATION,
            ErrorCode.INVALID_API_KEY,
            ErrorCode.WRONG_CREDENTIALS,
            ErrorCode.INVALID_JOB_ID,
            ErrorCode.REQUEST_TOO_LARGE,
        ),
    )
    def create(self, request: Request) -> Response:
        """Submit a job's reply, or give the job back."""
        found = body.read_reply(request, limit_bytes=MAX_REPLY_BODY_BYTES)
        sent = submit_contract.parse(found.values, holds_half_pairs=found.holds_half_pairs)
        reward = submit.submit(api_key=headers.get_api_key(request), body=sent, now=clock.now())
        return Response(SubmitAnswer(reward=float(reward)).model_dump())
