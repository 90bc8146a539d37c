"""The command behind `script/manage`: Django's commands, such as `create_user`, on the local site that runs."""

import os
import subprocess
import sys
from pathlib import Path

from hordechat.local import bootstrap, places, site_data, stack
from hordechat.local.refusals import Refused

USAGE = """\
usage: script/manage [--data DIR] COMMAND [arguments]

Run a command of manage.py on the site that script/server runs, with that site's settings. Examples:

  script/manage create_user "my account"        make a user and show the API key, once
  script/manage create_key 4                    give user 4 a further key
  script/manage ledger reconcile                compare every balance with the ledger
  script/manage help                            list all commands

--data names the folder that script/server was given, when it was given one. On a site of your own, where the settings
are in the environment, run manage.py itself."""


def main() -> int:
    """Run the command and return its exit code."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in {"-h", "--help"}:
        print(USAGE)
        return 0
    bootstrap.enter("hordechat.local.manage", bootstrap.SERVER)
    folder = places.LOCAL
    if arguments[0] == "--data":
        if len(arguments) < 3:  # noqa: PLR2004 - the option, its value, a command
            raise Refused("--data takes the folder script/server was given, and a command follows it.")
        folder = Path(arguments[1]).absolute()
        arguments = arguments[2:]
    environment = site_data.find_environment(folder)
    if environment is None:
        raise Refused(f"No server runs on {places.shown(folder)}; start script/server in another terminal first.")
    os.chdir(places.PROJECT)
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, env=stack.process_environment(environment), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
