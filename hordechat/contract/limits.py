"""Numbers a client or a worker can observe, each with its reason; relations between them are asserted at import."""

KIB = 1024
MIB = 1024 * KIB

# -- Bodies ------------------------------------------------------------------------------------------------------------
MAX_CHAT_BODY_BYTES = 36 * MIB
"""A chat submit at every cap at once: 25 MiB of images, base64 included, 1 MiB of text, room for JSON (BDY-01)."""
MAX_REPLY_BODY_BYTES = 4 * MIB
"""A reply submit: 1 MiB of content and 1 MiB of reasoning, escaped."""
MAX_BODY_BYTES = 256 * KIB
"""Every other body."""
MAX_JSON_SEPARATORS = 1_500_000
"""How many of the bytes `[ { ,` a body may hold: each can become a Python object of about 50 bytes."""

# -- Chat requests -----------------------------------------------------------------------------------------------------
MAX_CHAT_MODEL_COUNT = 5
MAX_CHAT_MESSAGE_COUNT = 1024
MAX_CHAT_TEXT_BYTES = 1 * MIB
MAX_MODEL_NAME_CHARACTERS = 255
MAX_MESSAGE_NAME_CHARACTERS = 64
MAX_STOP_SEQUENCES = 128
MAX_STOP_SEQUENCE_CHARACTERS = 2000
MAX_REFUSED_VALUE_CHARACTERS = 64
"""How much of a refused value a message quotes."""

MIN_OUTPUT_TOKENS = 16
MAX_CHAT_OUTPUT_TOKENS = 16_384
DEFAULT_CHAT_OUTPUT_TOKENS = 512
"""OpenAI clients usually leave the limit out, and the text default of 80 cuts a reply short."""
DEFAULT_CONTEXT_TOKENS = 2048
SIZING_CHARACTERS_PER_TOKEN = 3
"""Sizing is cautious with 3 characters a token; the kudos formula reckons with 4."""

DEFAULT_CLIENT_AGENT = "unknown:0:unknown"
MAX_CLIENT_AGENT_CHARACTERS = 255

# -- Workers -----------------------------------------------------------------------------------------------------------
ONLINE_SECONDS = 300
"""A worker that popped within this time is online."""
CHECK_IN_WINDOW_SECONDS = 30
"""A pop this soon after the last check-in leaves all but the chat declaration of the worker's row unwritten."""
TEXT_JOB_LEASE_SECONDS = 150
MAX_WORKER_NAME_CHARACTERS = 100
MAX_WORKER_MODELS = 200
MAX_BRIDGE_AGENT_CHARACTERS = 1000
MAX_WORKER_THREADS = 50
MAX_POP_AMOUNT = 20
MAX_INTEGER = 2**31 - 1
"""What a column of the database holds."""

# -- Replies -----------------------------------------------------------------------------------------------------------
MAX_NATIVE_FINISH_REASON_CHARACTERS = 32
MAX_REPORTED_TOKENS = 10_000_000
MAX_REASONING_BYTES = MAX_CHAT_TEXT_BYTES

# -- Requests' life ----------------------------------------------------------------------------------------------------
REQUEST_LIFE_SECONDS = 20 * 60
"""A request expires this long after its activation or its last pop or reply, whichever is later."""
EXACT_QUEUE_POSITIONS = 1000

assert MAX_CHAT_TEXT_BYTES * 25 < MAX_CHAT_BODY_BYTES
assert 2 * MAX_REASONING_BYTES < MAX_REPLY_BODY_BYTES
assert MIN_OUTPUT_TOKENS <= DEFAULT_CHAT_OUTPUT_TOKENS <= MAX_CHAT_OUTPUT_TOKENS
assert DEFAULT_CHAT_OUTPUT_TOKENS < DEFAULT_CONTEXT_TOKENS
assert CHECK_IN_WINDOW_SECONDS < ONLINE_SECONDS
assert TEXT_JOB_LEASE_SECONDS < REQUEST_LIFE_SECONDS
