"""A page of `docs/` that is generated from code: written by a command, held true by a test."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


@dataclass(frozen=True)
class GeneratedPage:
    """One page, and the module whose command writes it."""

    name: str
    module: str
    render: Callable[[], str]

    @property
    def path(self) -> Path:
        """Where the page stands."""
        return DOCS / self.name

    def main(self) -> int:
        """Run the module's command: write the page, or with `--check` only say whether it is up to date."""
        command = f"python -m {self.module}"
        parser = argparse.ArgumentParser(prog=command, description=f"Write docs/{self.name} from the code.")
        parser.add_argument(
            "--check", action="store_true", help="write nothing; exit with 1 when the page is out of date"
        )
        if not parser.parse_args().check:
            self.path.write_text(self.render(), encoding="utf-8")
            return 0
        if self.path.exists() and self.path.read_text(encoding="utf-8") == self.render():
            return 0
        sys.stderr.write(f"docs/{self.name} is out of date: run {command}.\n")
        return 1
