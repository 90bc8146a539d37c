"""Measure what PostgreSQL alone makes of a cycle: the project's own statements, run by pgbench.

    python -m benchmarks.limit

The statements of submit, pop, reply and status are put into one pgbench script, with the values of a usual request, and
run by as many clients as the cycle benchmark has. The HTTP stack's cycles a second, over these, say what Django, the
sockets and the driver cost. pgbench comes with PostgreSQL; `--pgbench` names it when it is not on the PATH.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cycle import FAILED, INTERRUPTED, NotMeasured
from benchmarks.ledger import in_a_process, running_database

PROJECT = Path(__file__).parent.parent
MODEL = "demo/echo"
REPLY = "Hello yourself"
TRANSACTIONS_A_SECOND = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)
PARAMETER = re.compile(r"%\((\w+)\)s")


def set_up(environment: Mapping[str, str], clients: int, connection: Any) -> None:  # pragma: no cover - own process
    """Make requesters, an owner and a worker, and send what the script needs of them."""
    os.environ.update(environment, DJANGO_SETTINGS_MODULE="hordechat.settings.django")
    import django  # noqa: PLC0415 - the settings read the environment when they are imported

    django.setup()
    from decimal import Decimal  # noqa: PLC0415 - beside what needs the settings

    from billing_app.models import Account  # noqa: PLC0415 - needs the settings
    from billing_app.selectors import keys  # noqa: PLC0415 - the same
    from billing_app.services import accounts  # noqa: PLC0415 - the same
    from hordechat.contract import pop as contract  # noqa: PLC0415 - the same
    from hordechat.infra import clock  # noqa: PLC0415 - the same
    from requests_app.services import pop  # noqa: PLC0415 - the same
    from workers_app.models import Worker  # noqa: PLC0415 - the same

    now = clock.now()
    owner = accounts.create_user(alias="owner", kudos=Decimal(0), is_trusted=True, now=now)
    body = {
        "name": "worker",
        "models": [MODEL],
        "chat_jobs": True,
        "prompt_jobs": False,
        "chat_features": ["prompt_overflow_refused"],
        "chat_limits": {"max_context_length": 8192, "max_length": 1024},
        "model_id": MODEL,
    }
    pop.assign_next(api_key=owner.api_key, pop=contract.parse(body), address=None, now=now)
    requesters = [
        accounts.create_user(alias="client", kudos=Decimal(10_000_000), now=now).api_key for _ in range(clients)
    ]
    worker = Worker.objects.get()
    connection.send(
        {
            "hashes": [keys.candidate_hashes(key)[0] for key in requesters],
            "owner_hash": keys.candidate_hashes(owner.api_key)[0],
            "owner_id": owner.id,
            "owner_account": Account.objects.get(user_id=owner.id, kind="balance").id,
            "worker_id": str(worker.id),
        }
    )


def script_of(known: Mapping[str, Any]) -> str:
    """Return a cycle as a pgbench script: the project's statements, their parameters filled in."""
    hashes = ", ".join(f"'{each}'" for each in known["hashes"])
    usual = {
        "models": f"ARRAY['{MODEL}']",
        "now": "now()",
        "online_since": "now() - interval '300 s'",
        "expiry": "now() + interval '20 minutes'",
        "request_id": ":request_id::uuid",
        "generation_id": ":generation_id::uuid",
        "id": ":request_id::uuid",
        "user_id": ":user_id::bigint",
        "worker_id": f"'{known['worker_id']}'::uuid",
        "anonymous": "0",
        "shared_key_id": "NULL",
        "workers": "ARRAY[]::uuid[]",
        "worker_blacklist": "false",
        "trusted_workers": "false",
        "forgiven": "'forgiven'",
        "mint": "-3",
    }
    owner_hashes = f"ARRAY['{known['owner_hash']}']"
    post = {"debit_accounts": "ARRAY[:account_id::bigint]", "credit_accounts": "ARRAY[-1]", "kinds": "ARRAY['tax']"}
    steps = [
        "SELECT gen_random_uuid() AS request_id, gen_random_uuid() AS generation_id \\gset",
        *_read("requests_app/selectors", "requester.sql", usual | {
            "key_hashes": f"ARRAY[(ARRAY[{hashes}])[:client_id + 1]]"}, keep=True),
        *_read("requests_app/selectors", "chat_fleet.sql", usual | {"models_in_doubt": f"ARRAY['{MODEL}']"}),
        "BEGIN;",
        *_read("requests_app/services", "store_request.sql", usual | _request_columns()),
        "SELECT id FROM accounts WHERE user_id = :user_id::bigint ORDER BY id FOR NO KEY UPDATE;",
        *_read("requests_app/selectors", "waiting_slots.sql", usual | {"any_models": "true"}),
        *_read("billing_app/services", "post.sql", usual | post | {
            "keys": "ARRAY['tax:' || :request_id::text]", "amounts": "ARRAY[1]", "causes": "ARRAY[:request_id::uuid]"}),
        "COMMIT;",
        *_read("workers_app/selectors", "pop_facts.sql", usual | {
            "key_hashes": owner_hashes, "name": "'worker'", "most_messages": "50"}),
        *_read("requests_app/selectors", "candidates.sql", usual | _candidate_columns(known)),
        "BEGIN;",
        *_read("requests_app/services", "claim.sql", usual | {
            "request_ids": "ARRAY[:request_id::uuid]", "amount": "1"}),
        *_read("requests_app/services", "assign.sql", usual | {
            "ids": "ARRAY[:generation_id::uuid]", "waiting": "0", "model": f"'{MODEL}'", "lease_seconds": "150",
            "deadline": "now() + interval '150 s'", "fake": "false", "over_capacity": "false",
            "assigned_model": f"'{MODEL}'", "max_context_length": "8192", "max_length": "1024"}),
        "COMMIT;",
        *_read("requests_app/selectors", "submit_facts.sql", usual | {"key_hashes": owner_hashes}),
        "BEGIN;",
        *_read("requests_app/services", "store_reply.sql", usual | _reply_columns()),
        *_read("requests_app/selectors", "progress.sql", usual),
        *_read("billing_app/services", "post.sql", usual | {
            "keys": "ARRAY['reply:' || :generation_id::text, 'burn:' || :generation_id::text]",
            "debit_accounts": "ARRAY[:account_id::bigint, :account_id::bigint]",
            "credit_accounts": f"ARRAY[{known['owner_account']}, -2]", "amounts": "ARRAY[0.54, 1]",
            "kinds": "ARRAY['reply', 'burn']", "causes": "ARRAY[:generation_id::uuid, :generation_id::uuid]"}),
        "COMMIT;",
        *_read("requests_app/selectors", "status.sql", usual | {
            "is_chat": "true", "exact_positions": "1000", "few_models": "8"}),
        *_read("requests_app/selectors", "generations.sql", usual),
    ]  # fmt: skip
    return "\n".join(steps) + "\n"


def _read(folder: str, name: str, values: Mapping[str, str], *, keep: bool = False) -> list[str]:
    """Return one of the project's statements with its parameters filled in; `keep` makes variables of its row."""
    statement = (PROJECT / folder / "sql" / name).read_text(encoding="utf-8").rstrip()
    # A comment may hold a quote, which pgbench would take for one.
    statement = "\n".join(line for line in statement.splitlines() if not line.lstrip().startswith("--"))
    filled = PARAMETER.sub(lambda found: values[found[1]], statement)
    return [f"{filled} \\gset" if keep else f"{filled};"]


def _request_columns() -> dict[str, str]:
    nothing = dict.fromkeys(
        (
            "api_key_id", "shared_key_id", "upfront", "operation_key", "operation_fingerprint", "address",
            "proxied_account", "webhook", "extras", "context_adjustments", "tools_temperature",
        ),
        "NULL",
    )  # fmt: skip
    return nothing | {
        "prompt": "'user: Hello there'",
        "submitted_prompt": "'user: Hello there'",
        "params": "'{}'::jsonb",
        "validated_backends": "false",
        "slow_workers": "true",
        "n": "1",
        "max_length": "64",
        "max_context_length": "2048",
        "active": "true",
        "order_key": "-floor(extract(epoch FROM now()) / 10)::bigint * 50",
        "tax": "1",
        "quote": "8",
        "feature_mask": "4096",
        # pgbench takes a word behind a colon for a variable, in a string too.
        "client_agent": "'benchmark'",
        "is_chat": "true",
        "messages": '\'[{"role": "user", "content": "Hello there"}]\'::jsonb',
        "needs": "ARRAY['prompt_overflow_refused']",
        "conformance": "'strict'",
    }


def _candidate_columns(known: Mapping[str, Any]) -> dict[str, str]:
    return {
        "takes_chat": "true",
        "chat_model": f"'{MODEL}'::varchar",
        "covered_mask": "4096",
        "chat_max_length": "1024",
        "chat_max_context_length": "8192",
        "tools_max_temperature": "NULL",
        "text_models": "ARRAY[]::varchar[]",
        "max_length": "512",
        "max_context_length": "2048",
        "first_users": f"ARRAY[{known['owner_id']}]",
        "own_only": "false",
        "apply_all": "false",
        "is_owner_trusted": "true",
        "is_backend_validated": "false",
        "is_slow": "true",
        "limit": "20",
    }


def _reply_columns() -> dict[str, str]:
    message = json.dumps({"role": "assistant", "content": REPLY})
    nothing = ("native_finish_reason", "prompt_tokens", "completion_tokens", "reasoning_tokens")
    return dict.fromkeys(nothing, "NULL") | {
        "content": f"'{REPLY}'",
        "state": "'ok'",
        "seed": "0",
        "metadata": "'[]'::jsonb",
        "message": f"'{message}'::jsonb",
        "finish_reason": "'stop'",
        "charge_basis": "'output_estimate'",
        "reward": "0.54",
        "charge": "1.54",
        "written_tokens": "20",
        "speed_sample": "20",
        "speed_samples": "20",
        "is_suspicious": "false",
        "is_owner_trusted": "true",
        "most_suspicions": "5",
    }


def find_pgbench(named: str | None) -> str:
    """Return the program.

    Raises:
        NotMeasured: it is not there.
    """
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"), reverse=True)
    found = named or shutil.which("pgbench") or (str(places[0]) if places else None)
    if found is None or not Path(found).exists():
        raise NotMeasured("pgbench was not found: it comes with PostgreSQL's server package; --pgbench names it.")
    return found


def measure(environment: Mapping[str, str], options: argparse.Namespace) -> float:
    """Return cycles a second.

    Raises:
        NotMeasured: pgbench failed; its words are in the message.
    """
    known = in_a_process(set_up, environment, options.clients)
    with tempfile.NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as script:
        script.write(script_of(known))
        script.flush()
        if options.print:
            print(Path(script.name).read_text(encoding="utf-8"))
        command = [
            find_pgbench(options.pgbench), "--no-vacuum", "--protocol=prepared", f"--file={script.name}",
            f"--client={options.clients}", "--jobs=2", f"--time={options.seconds}", environment["DATABASE_URL"],
        ]  # fmt: skip
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False,
            env={**os.environ, "PGOPTIONS": "-c enable_seqscan=off"},
        )  # fmt: skip
    found = TRANSACTIONS_A_SECOND.search(answer.stdout)
    if answer.returncode or found is None or "failed" in answer.stderr:
        raise NotMeasured(f"pgbench failed: {answer.stderr.strip()[-2000:]}")
    return float(found[1])


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.limit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=8, metavar="N", help="connections, a requester each (8)")
    parser.add_argument("--seconds", type=int, default=20, metavar="S", help="how long (20)")
    parser.add_argument("--pgbench", metavar="PATH", help="the program, when it is not on the PATH")
    parser.add_argument("--print", action="store_true", help="print the script too")
    options = parser.parse_args(arguments)
    if min(options.clients, options.seconds) <= 0:
        parser.error("clients and seconds have to be above 0.")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Start PostgreSQL, measure, report; return the exit status."""
    options = parse_arguments(arguments)
    try:
        with running_database(is_durable=True) as environment:
            cycles = measure(environment, options)
    except NotMeasured as reason:
        print(reason, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("Interrupted; PostgreSQL is down.", file=sys.stderr)
        return INTERRUPTED
    print(f"{cycles:.1f} cycles a second of PostgreSQL alone, {options.clients} clients, load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
