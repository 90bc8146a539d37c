"""The command behind `script/lock`: make requirements/*.txt anew from requirements/*.in."""

import argparse
import subprocess

from hordechat.local import places, steps
from hordechat.local.bootstrap import REQUIREMENTS, Environment
from hordechat.local.refusals import Refused

CONSTRAINTS = {"bootstrap": (), "base": (), "local": ("base",), "dev": ("base", "local")}
"""Each lock file, in order, with those whose versions it has to take over."""

OPTIONS = (
    *("-q", "--universal", "--generate-hashes", "--python-version", "3.11", "--no-emit-index-url"),
    *("--custom-compile-command", "script/lock"),
)


def main() -> None:
    """Lock every group of requirements."""
    steps.use_readable_output()
    parser = argparse.ArgumentParser(prog="script/lock", description="Make requirements/*.txt anew from *.in.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions the *.in files allow")
    arguments = parser.parse_args()

    tools = Environment(places.LOCAL / "lock-tools")
    tools.prepare(())
    if not tools.install_uv():
        raise Refused(
            "The pinned uv could not be installed, as the lines above say; check the network and start again."
        )
    for group, constraints in CONSTRAINTS.items():
        with steps.step(f"Locking requirements/{group}.txt"):
            command = [str(tools.folder / "bin" / "uv"), "pip", "compile", *OPTIONS, f"{group}.in"]
            command += [part for other in constraints for part in ("-c", f"{other}.txt")]
            command += ["-o", f"{group}.txt", *(("--upgrade",) if arguments.upgrade else ())]
            locked = subprocess.run(
                command, cwd=REQUIREMENTS, env=tools.index_settings(), capture_output=True, text=True, check=False
            )
        if locked.returncode:
            raise Refused(f"uv could not lock requirements/{group}.in:\n{locked.stderr.strip()}")


if __name__ == "__main__":
    main()
