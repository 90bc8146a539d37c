"""The seed of tests that throw dice: one number, so that a run repeats; `HORDE_TEST_SEED` sets another."""

import os

SEED = int(os.environ.get("HORDE_TEST_SEED", "20260801"))
