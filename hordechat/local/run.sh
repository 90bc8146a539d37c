#!/bin/sh
# Find a Python that hordechat can use and hand it the command: run.sh <module> [arguments].
# Everything after this file is written for Python 3.11; this one has to read well on a machine that has none.
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P) || exit 1
module=$1
shift

python=
newest=
for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    newest=${newest:-$version}
    "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    python=${python:-$candidate}
    # Debian ships Pythons that cannot make a virtual environment; another one on PATH may.
    if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
        python=$candidate
        break
    fi
done

if [ -z "$python" ]; then
    echo "hordechat needs Python 3.11 or later, and PATH has ${newest:-none}: install one (on Debian and Ubuntu:" \
        "apt install python3 python3-venv) or put it on PATH." >&2
    exit 1
fi

unset PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS
# -P: the folder this was called from may hold another hordechat.
PYTHONPATH=$root exec "$python" -P -s -m "hordechat.local.$module" "$@"
