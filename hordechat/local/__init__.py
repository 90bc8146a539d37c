"""The local stack: a real PostgreSQL, Valkey and every process of hordechat on one machine, installed nowhere else.

It runs before any package is there, so it uses the standard library alone. `run.sh` finds a Python, `bootstrap` makes
`.venv`, `server`, `checks` and `lockfiles` are the commands behind `script/`; `postgresql`, `valkey` and `stack` start
single servers for tests and benchmarks.
"""
