"""The command behind `script/server`: a complete local hordechat in the foreground."""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hordechat.local import (
    accounts,
    bootstrap,
    demo,
    interrupts,
    places,
    ports,
    postgresql,
    site_data,
    stack,
    steps,
    valkey,
)
from hordechat.local.accounts import Accounts
from hordechat.local.processes import Child
from hordechat.local.refusals import Refused
from hordechat.local.site_data import SiteData
from hordechat.local.stack import Api, Service

PORT = 7001
DATABASE = "hordechat"
LOOK_SECONDS = 0.2
CHECK_PREFIX = "check-"
CHECK_WAIT_SECONDS = 60

DESCRIPTION = """\
Start a complete local hordechat: PostgreSQL, Valkey, the API, Celery and a demo worker that answers with an echo.
Nothing is installed outside of this folder, and Ctrl-C leaves nothing running."""

EPILOG = """\
DATABASE_URL and REDIS_URL, when set, are used instead of starting PostgreSQL and Valkey. HORDE_POSTGRESQL_BIN names the
folder of another PostgreSQL's programs. docs/settings.md lists every other setting; each can be given the same way."""


@dataclass(frozen=True)
class Options:
    """The command line."""

    port: int | None
    data: Path
    is_data_given: bool
    check: bool
    reset: bool
    demo: bool


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line; wrong ones and --help end the process."""
    parser = argparse.ArgumentParser(
        prog="script/server",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, metavar="N", help=f"the API's port on {ports.HOST} (default: {PORT})")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the data live (default: .local)")
    parser.add_argument(
        "--check", action="store_true", help="start on a free port with new data, serve one request, end"
    )
    parser.add_argument("--reset", action="store_true", help="remove the data and end; the next start begins anew")
    parser.add_argument("--no-demo", action="store_true", help="no demo worker and no demo request")
    found = parser.parse_args(arguments)
    if found.check and found.no_demo:
        parser.error("--check sends the demo request, which --no-demo leaves out")
    if found.port is not None and not 0 < found.port < 1 << 16:
        parser.error("--port takes a number from 1 to 65535")
    return Options(
        port=found.port,
        data=found.data.absolute() if found.data is not None else places.LOCAL,
        is_data_given=found.data is not None,
        check=found.check,
        reset=found.reset,
        demo=not found.no_demo,
    )


def main() -> int:
    """Run the command and return its exit code."""
    steps.use_readable_output()
    options = parse(sys.argv[1:])
    if options.reset:
        site_data.remove(options.data)
        print(f"The data in {places.shown(options.data)} are removed.")
        return 0
    interrupts.end_on_signals()
    # Before packages are fetched, so that nobody waits for a refusal.
    if not options.check:
        site_data.require_free(options.data)
    if options.port is not None or not options.check:
        ports.claim(options.port or PORT)
    bootstrap.enter("hordechat.local.server", bootstrap.SERVER)
    try:
        with ExitStack() as cleanup:
            return _serve(options, cleanup)
    except BrokenPipeError:
        return steps.abandon_output()


def _serve(options: Options, cleanup: ExitStack) -> int:
    started = time.monotonic()
    port = options.port or (ports.free_port() if options.check else PORT)
    ports.claim(port)
    site = _open_site(options, f"http://{ports.HOST}:{port}", cleanup)
    print(f"Starting hordechat on http://{ports.HOST}:{port}, data in {places.shown(site.folder)}")

    children, environment = _start_databases(site, cleanup)
    with steps.step("Bringing the tables up to date"):
        migrated = stack.manage(environment, "migrate", "--no-input")
        if migrated.returncode:
            raise Refused(f"The tables could not be brought up to date:\n{migrated.stdout}{migrated.stderr}")
    site.publish({**environment, "HORDE_URL": f"http://{ports.HOST}:{port}", "HORDE_PORT": str(port)})
    api, services = _launch_services(site, port, environment, cleanup)
    # While those start: neither waits for the other.
    with steps.step("Accounts"):
        people = accounts.ensure(environment, site.folder / "credentials.json")
    if options.demo:
        services.append(_launch_demo_worker(site, api, environment, people, cleanup))
    with steps.step(f"Processes: {', '.join(service.name for service in services)}"):
        for service in services:
            service.wait()
    # Registered last and so called first: all are asked to end before any is waited for.
    cleanup.callback(_request_stops, services)
    children += [service.child for service in services]
    print(f"  Ready after {time.monotonic() - started:.1f} s.")

    if options.check:
        _check(api, people, environment, children)
        print(f"The check passed after {time.monotonic() - started:.1f} s.")
        return 0
    _show_new_accounts(site, people)
    if options.demo:
        _try_demo(api, people)
    _show_addresses(api, site, people)
    return _stay(children)


def _check(api: Api, people: Accounts, environment: dict[str, str], children: Sequence[Child]) -> None:
    try:
        _show_demo(demo.run(api, people))
        _require_sound_ledger(environment)
    except Refused:
        for child in children:
            print(f"\nThe last lines of {child.name}:\n{child.last_lines()}", file=sys.stderr)
        raise


def _try_demo(api: Api, people: Accounts) -> None:
    try:
        _show_demo(demo.run(api, people))
    except Refused as refusal:
        # What is in the way is kept in the site's own data, and can be put right only while the site runs.
        print(f"\nThe demo request was not served. {refusal}\nThe site runs all the same. From another terminal:")
        print("  script/manage maintenance status        says whether it takes requests at all")
        print('  script/manage worker "demo worker"      says whether the worker is in maintenance or paused')


def _open_site(options: Options, url: str, cleanup: ExitStack) -> SiteData:
    """Take this run's data; a check on a database of our own gets a folder of its own."""
    if not options.check or options.is_data_given or "DATABASE_URL" in os.environ:
        site = SiteData.open(options.data)
        cleanup.callback(site.close)
        site.announce(url)
        return site
    # One check at a time looks for what killed ones left, and has taken its own folder before the next one looks.
    turn = places.lock(places.LOCAL / "check.lock", patience_seconds=CHECK_WAIT_SECONDS)
    try:
        for leftover in places.LOCAL.glob(f"{CHECK_PREFIX}*"):
            _remove_if_unused(leftover)
        folder = Path(tempfile.mkdtemp(prefix=CHECK_PREFIX, dir=places.LOCAL))
        cleanup.callback(_remove_if_unused, folder)
        site = SiteData.open(folder)
        cleanup.callback(site.close)
        site.announce(url)
        return site
    finally:
        if turn is not None:
            os.close(turn)


def _remove_if_unused(folder: Path) -> None:
    try:
        site_data.remove(folder)
    except Refused:
        return  # another check is at work on it
    shutil.rmtree(folder, ignore_errors=True)


def _start_databases(site: SiteData, cleanup: ExitStack) -> tuple[list[Child], dict[str, str]]:
    children: list[Child] = []
    environment = {
        "HORDE_SECRET_KEY": site.secrets["secret_key"],
        "HORDE_API_KEY_PEPPERS": f"local:{site.secrets['pepper']}",
        "PROMETHEUS_MULTIPROC_DIR": str(site.folder / "metrics"),
    }
    if "DATABASE_URL" in os.environ:
        print("  PostgreSQL: the one DATABASE_URL names")
        given = ("DATABASE_URL", "HORDE_SECRET_KEY", "HORDE_API_KEY_PEPPERS")
        environment |= {name: os.environ[name] for name in given if name in os.environ}
    else:
        with steps.step("PostgreSQL"):
            server = postgresql.running(site.folder / "postgresql", durable=True, log=site.log("postgresql"))
            database = cleanup.enter_context(server)
            database.create_database(DATABASE)
        children.append(database.child)
        environment["DATABASE_URL"] = database.url(DATABASE)
    if "REDIS_URL" in os.environ:
        print("  Redis: the one REDIS_URL names")
        environment["REDIS_URL"] = os.environ["REDIS_URL"]
    else:
        with steps.step("Valkey (Redis protocol)"):
            cache = cleanup.enter_context(valkey.running(site.folder / "valkey", log=site.log("valkey")))
        children.append(cache.child)
        environment["REDIS_URL"] = cache.url
    return children, environment


def _launch_services(
    site: SiteData, port: int, environment: dict[str, str], cleanup: ExitStack
) -> tuple[Api, list[Service]]:
    lock = [site.lock]
    api = Api(environment, port=port, log=site.log("api"), inherited=lock)
    # Celery knows the site under the same address as the API itself.
    environment = {**environment, "HORDE_URL": api.url, "HORDE_PORT": str(port)}
    schedule = site.folder / "beat" / "schedule"
    services: list[Service] = [
        api,
        stack.celery_worker_service(environment, log=site.log("celery"), inherited=lock),
        stack.celery_beat_service(environment, schedule=schedule, log=site.log("beat"), inherited=lock),
    ]
    for service in services:
        cleanup.callback(service.stop)
        service.launch()
    return api, services


def _launch_demo_worker(
    site: SiteData, api: Api, environment: dict[str, str], people: Accounts, cleanup: ExitStack
) -> Service:
    service = stack.demo_worker_service(
        environment,
        url=api.url,
        api_key=people.demo_owner.api_key,
        log=site.log("demo-worker"),
        inherited=[site.lock],
    )
    cleanup.callback(service.stop)
    service.launch()
    return service


def _request_stops(services: Sequence[Service]) -> None:
    for service in reversed(services):
        service.request_stop()


def _show_new_accounts(site: SiteData, people: Accounts) -> None:
    if not people.new:
        return
    print(
        f"\nAccounts made by this start, shown this once and kept in {places.shown(site.folder / 'credentials.json')}:"
    )
    for name in people.new:
        account: accounts.Account = getattr(people, name)
        login = f"   admin login {account.login}, password {account.password}" if account.login else ""
        print(f"  {account.alias:<14} API key {account.api_key}{login}")


def _show_demo(result: demo.Demo) -> None:
    print("\nOne chat request, sent as a client sends it:")
    print(f"  asked    {demo.QUESTION}")
    print(f"  answered {json.dumps(result.reply, ensure_ascii=False)}")
    print(f"  after {result.seconds:.2f} s, for {result.kudos:g} kudos:")
    for name, (before, after) in (("demo_client", result.client_kudos), ("demo_owner", result.owner_kudos)):
        print(f"    {name:<12} {before:>10.2f} -> {after:>10.2f}  ({after - before:+.2f})")


def _require_sound_ledger(environment: dict[str, str]) -> None:
    with steps.step("Adding up the ledger"):
        answer = stack.manage(environment, "ledger", "reconcile", "--json")
    if answer.returncode:
        raise Refused(f"The ledger does not add up:\n{answer.stdout}{answer.stderr}")
    found = json.loads(answer.stdout.strip().splitlines()[-1])
    if float(found["sum"]) != 0 or found["drifted"]:
        raise Refused(f"The ledger does not add up: {json.dumps(found)}")


def _show_addresses(api: Api, site: SiteData, people: Accounts) -> None:
    credentials = places.shown(site.folder / "credentials.json")
    print("\nTry it:")
    print(f"  {demo.curl(api, people)}")
    print(f"  curl -s {api.url}/api/v2/generate/chat/status/<the id it answers with>")
    print("\nAddresses:")
    print(f"  API       {api.url}/api/v2/")
    print(f"  Reference {api.url}/api/schema/")
    print(f"  Admin     {api.url}/admin/   login {people.admin.login}, password in {credentials}")
    print(f"  Logs      {places.shown(site.folder / 'log')}")
    print(
        "\nscript/manage runs operators' commands here, from another terminal, such as: script/manage create_user NAME"
    )


def _stay(children: Sequence[Child]) -> int:
    try:
        # Said in here: from this line on, being asked to stop is a success.
        print("Ctrl-C stops everything. What the processes say:\n")
        for child in children:
            child.is_shown = True
        while True:
            for child in children:
                if child.has_ended():
                    raise Refused(f"{child.name} ended by itself; its last lines:\n{child.last_lines()}")
            time.sleep(LOOK_SECONDS)
    except interrupts.Interrupted:
        for child in children:
            child.is_shown = False
        print("\nStopping …")
        return 0


if __name__ == "__main__":
    sys.exit(main())
