"""The accounts of a local site: an administrator, and both sides of the demo, made on the first start."""

import json
import secrets
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from hordechat.local import places, stack
from hordechat.local.refusals import Refused
from hordechat.local.site_data import damaged, read_json

CLIENT_KUDOS = "10000"


@dataclass(frozen=True)
class Account:
    """Who someone is on the local site; login and password are the administrator's alone."""

    id: int
    alias: str
    api_key: str
    login: str = ""
    password: str = ""


@dataclass(frozen=True)
class Accounts:
    """The three accounts every local site has."""

    admin: Account
    demo_owner: Account
    demo_client: Account
    new: tuple[str, ...] = ()
    """Those made by this start, whose keys are shown once."""


ROLES: Mapping[str, tuple[str, ...]] = {
    "admin": ("--staff", "--password-env", "HORDE_ADMIN_PASSWORD"),
    "demo_owner": ("--trusted",),
    "demo_client": ("--kudos", CLIENT_KUDOS),
}


def ensure(environment: Mapping[str, str], path: Path) -> Accounts:
    """Return the accounts in the file, making each one that is not there yet.

    Each is written down as soon as it exists, so that an interrupted first start goes on where it stopped.

    Raises:
        DamagedData: the file is not as it was written.
        Refused: an account cannot be made.
    """
    known = {alias: _account(values, path) for alias, values in read_json(path).items() if alias in ROLES}
    new = []
    for alias in ROLES:
        if alias not in known:
            known[alias] = _create(environment, alias)
            written = {alias: asdict(account) for alias, account in known.items()}
            places.write_privately(path, json.dumps(written, indent=2) + "\n")
            new.append(alias)
    return Accounts(**known, new=tuple(new))


def _account(values: object, path: Path) -> Account:
    if not isinstance(values, dict):
        raise damaged(path)
    try:
        return Account(**values)
    except TypeError as error:
        raise damaged(path) from error


def _create(environment: Mapping[str, str], alias: str) -> Account:
    is_admin = "--staff" in ROLES[alias]
    login = alias if is_admin else ""
    password = secrets.token_urlsafe(18) if is_admin else ""
    answer = _create_user(environment, alias, login, password)
    if answer.returncode and is_admin:
        # A start that was interrupted after making the account and before writing it down left the login taken.
        login = f"{alias}_{secrets.token_hex(3)}"
        answer = _create_user(environment, alias, login, password)
    if answer.returncode:
        raise Refused(f"The account {alias} could not be made:\n{answer.stderr.strip()}")
    made = json.loads(answer.stdout.strip().splitlines()[-1])
    return Account(id=made["id"], alias=made["alias"], api_key=made["api_key"], login=login, password=password)


def _create_user(
    environment: Mapping[str, str], alias: str, login: str, password: str
) -> subprocess.CompletedProcess[str]:
    as_staff = ("--login", login) if login else ()
    secret = {"HORDE_ADMIN_PASSWORD": password} if password else {}
    return stack.manage({**environment, **secret}, "create_user", alias, *ROLES[alias], *as_staff, "--json")
