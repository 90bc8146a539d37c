"""The command behind `script/test`: every check, then pytest, on a PostgreSQL and a Valkey of the run's own."""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hordechat.local import bootstrap, interrupts, places, postgresql, stack, steps, valkey
from hordechat.local.processes import die_with_parent

TEMPLATE_DATABASE = "hordechat_template"
"""Migrated once; tests/conftest.py copies it for each process of pytest."""

USAGE = """\
usage: script/test [pytest arguments]

Run ruff, mypy, lint-imports, the check for missing migrations, and then pytest with the arguments given, all on a
PostgreSQL and a Valkey that are started for this run and end with it. Examples:

  script/test                      everything, as continuous integration does
  script/test -m "not slow"        what takes seconds rather than minutes
  script/test tests/local -n 0     one folder, in one process

HORDE_POSTGRESQL_BIN names the folder of another PostgreSQL's programs to test on."""

BIN = Path(sys.executable).parent
CHECKS: Mapping[str, Sequence[str]] = {
    "ruff check": ("-m", "ruff", "check", "."),
    "ruff format": ("-m", "ruff", "format", "--check", "."),
    "mypy": ("-m", "mypy"),
    "lint-imports": (str(BIN / "lint-imports"),),
    "missing migrations": ("manage.py", "makemigrations", "--check", "--dry-run"),
    "migrate": ("manage.py", "migrate", "--no-input", "--verbosity", "0"),
}


def main() -> int:
    """Run the command; the exit code is that of the first check that failed."""
    steps.use_readable_output()
    arguments = sys.argv[1:]
    if arguments and arguments[0] in {"-h", "--help"}:
        print(USAGE)
        return 0
    interrupts.end_on_signals()
    bootstrap.enter("hordechat.local.checks", bootstrap.TESTS)
    with tempfile.TemporaryDirectory(prefix="hordechat-test-") as name:
        folder = places.own(Path(name), mode=places.TRAVERSABLE)
        return _run_everything(folder, arguments)


def _run_everything(folder: Path, arguments: Sequence[str]) -> int:
    started = time.monotonic()
    print("hordechat's checks and tests")
    with (
        postgresql.running(folder / "postgresql", durable=False) as database,
        valkey.running(folder / "valkey") as cache,
    ):
        environment = _environment(database.url(TEMPLATE_DATABASE), cache.url)
        database.create_database(TEMPLATE_DATABASE)
        codes = {name: _check(name, command, environment) for name, command in CHECKS.items()}
        codes["pytest"] = _pytest(arguments, environment)
        if codes["migrate"] or codes["pytest"]:
            for server in (database.child, cache.child):
                print(f"\nThe last lines of {server.name}:\n{server.last_lines()}")
    failed = [name for name, code in codes.items() if code]
    verdict = f"Failed: {', '.join(failed)}." if failed else "All is well."
    print(f"{verdict} It took {time.monotonic() - started:.0f} s.")
    return codes[failed[0]] if failed else 0


def _environment(database_url: str, redis_url: str) -> dict[str, str]:
    """Return what the checks see: nothing of the settings a developer's shell may hold."""
    own = {name for name in os.environ if name.startswith("HORDE_") and name != "HORDE_POSTGRESQL_BIN"}
    inherited = stack.process_environment({})
    return {
        **{name: value for name, value in inherited.items() if name not in own},
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "HORDE_SECRET_KEY": secrets.token_urlsafe(48),
        "HORDE_API_KEY_PEPPERS": f"test:{secrets.token_urlsafe(48)}",
    }


def _check(name: str, command: Sequence[str], environment: Mapping[str, str]) -> int:
    print(f"  {name} …", end="", flush=True)
    started = time.monotonic()
    answer = _run(command, environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    verdict = "FAILED after" if answer.returncode else "ok,"
    print(f" {verdict} {time.monotonic() - started:.1f} s")
    if answer.returncode:
        print(answer.stdout)
    return answer.returncode


def _pytest(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    spread = () if any(argument.startswith(("-n", "--numprocesses")) for argument in arguments) else ("-n", "2")
    print(f"  pytest {' '.join([*spread, *arguments])}")
    return _run(("-m", "pytest", *spread, *arguments), environment).returncode


def _run(
    command: Sequence[str], environment: Mapping[str, str], *, stdout: int | None = None, stderr: int | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env=dict(environment),
        cwd=places.PROJECT,
        stdout=stdout,
        stderr=stderr,
        text=True,
        check=False,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )


if __name__ == "__main__":
    sys.exit(main())
