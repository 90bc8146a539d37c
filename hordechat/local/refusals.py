"""How the local stack says no: one sentence with the remedy, and exit code 1."""


class Refused(SystemExit):
    """What was asked cannot be done here; the message tells the person at the terminal what to change."""


class DamagedData(Refused):
    """A server does not start on the data it finds."""
