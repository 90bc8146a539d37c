"""`python -m workers_app.bridge`: read the options, connect the horde and the backend, serve."""

import asyncio
import logging
import os
import sys

from hordechat.contract.vocabulary import Capability
from workers_app.bridge import VERSION, options
from workers_app.bridge.demo import DemoBackend
from workers_app.bridge.horde import Declaration, Horde
from workers_app.bridge.openai import OpenAIBackend
from workers_app.bridge.options import Options
from workers_app.bridge.serve import Bridge, Plan
from workers_app.bridge.values import Backend

logger = logging.getLogger(__name__)


def main() -> int:
    """Run the bridge with the process's arguments and environment; return the exit code."""
    chosen = options.read(sys.argv[1:], os.environ)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for chatty in ("httpx2", "httpcore2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    return asyncio.run(_serve(chosen))


def make_backend(chosen: Options) -> Backend:
    """Return the backend the options name."""
    if chosen.openai is None:
        return DemoBackend()
    return OpenAIBackend(
        url=chosen.openai.url,
        model=chosen.openai.model,
        api_key=chosen.openai.api_key,
        kind=chosen.openai.kind,
        checks_context=chosen.openai.checks_context,
        features=chosen.openai.features,
    )


async def _serve(chosen: Options) -> int:
    backend = make_backend(chosen)
    declaration = Declaration(
        name=chosen.name,
        model=chosen.model,
        max_context_length=chosen.max_context_length,
        max_length=chosen.max_length,
        threads=chosen.threads,
        features=backend.features,
    )
    logger.info(
        "bridge %s: worker %r offers %s on %s, declaring %s",
        VERSION,
        chosen.name,
        chosen.model,
        chosen.url,
        ", ".join(sorted(backend.features)) or "nothing",
    )
    if Capability.PROMPT_OVERFLOW_REFUSED not in backend.features:
        logger.warning(
            "strict requests, the usual ones, will not come: they need a worker that refuses a prompt too long for it. "
            "Start with --context-check, or with --backend-kind llamacpp or vllm where that is the server."
        )
    plan = Plan(
        threads=chosen.threads,
        poll_seconds=chosen.poll_seconds,
        grace_seconds=chosen.grace_seconds,
        is_once=chosen.is_once,
    )
    try:
        async with Horde(url=chosen.url, api_key=chosen.api_key, declaration=declaration) as horde:
            return await Bridge(horde=horde, backend=backend, plan=plan).run()
    finally:
        await backend.close()


if __name__ == "__main__":
    raise SystemExit(main())
