"""The log of the API process holds the records of its server too."""

import re

from tests.http.wire import Site


def test_in_the_chosen_format(site: Site) -> None:
    lines = site.log.read_text(encoding="utf-8").splitlines()

    [started] = [line for line in lines if line.endswith("Started worker-1")]
    assert re.fullmatch(r"[\d-]{10} [\d:]{8},\d{3} INFO    \[-\] _granian\.serve: Started worker-1", started)
