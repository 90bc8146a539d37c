"""How much processor time the servers of a measurement took, which other load on the machine disturbs least.

Reads Linux's /proc; on other systems there is nothing to read and the answer is 0.
"""

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

# Places in /proc/<pid>/stat after the command's name, see proc_pid_stat(5).
PARENT, USER_TICKS, SYSTEM_TICKS = 1, 11, 12


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table."""

    parent_id: int
    seconds: float


def read_seconds(root_ids: dict[str, int]) -> dict[str, float]:
    """Return the processor seconds that each of the given processes and everything it started have taken so far."""
    table = _read_table()
    totals = dict.fromkeys(root_ids, 0.0)
    names = {process_id: name for name, process_id in root_ids.items()}
    for process_id, process in table.items():
        ancestor: int | None = process_id
        while ancestor is not None and ancestor not in names:
            ancestor = table[ancestor].parent_id if ancestor in table else None
        if ancestor is not None:
            totals[names[ancestor]] += process.seconds
    return totals


def _read_table() -> dict[int, Process]:
    ticks_a_second = os.sysconf("SC_CLK_TCK")
    table = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            # The command's name stands in brackets and may hold anything, blanks and brackets included.
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        ticks = int(fields[USER_TICKS]) + int(fields[SYSTEM_TICKS])
        table[int(folder.name)] = Process(parent_id=int(fields[PARENT]), seconds=ticks / ticks_a_second)
    return table
