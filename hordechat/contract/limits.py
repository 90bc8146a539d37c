"""Numbers a client or a worker can observe, each with its reason; relations between them are asserted at import."""

KIB = 1024
MIB = 1024 * KIB

# -- Bodies ------------------------------------------------------------------------------------------------------------
MAX_CHAT_BODY_BYTES = 36 * MIB
"""A chat submit at every cap at once: 25 MiB of images, base64 included, 1 MiB of text, room for JSON (BDY-01)."""
MAX_REPLY_BODY_BYTES = 4 * MIB
"""A reply submit: 1 MiB of content and 1 MiB of reasoning as UTF-8; texts sent as escapes take up to six times that."""
MAX_BODY_BYTES = 256 * KIB
"""Every other body."""
MAX_JSON_SEPARATORS = 1_500_000
"""How many of the bytes `[ { ,` a body may hold: each can become a Python object of about 50 bytes."""

# -- Chat requests -----------------------------------------------------------------------------------------------------
MAX_CHAT_MODEL_COUNT = 5
MAX_CHAT_MESSAGE_COUNT = 1024
MAX_CHAT_PART_COUNT = 16 * MAX_CHAT_MESSAGE_COUNT
"""Content parts of all messages: empty ones count towards no other limit, and half a million took seconds to handle."""
MAX_CHAT_TEXT_BYTES = 1 * MIB
"""UTF-8 bytes of every content and of the history's tool calls: names and arguments, not ids (RFS-16, RFS-35)."""
MAX_MODEL_NAME_CHARACTERS = 255
MAX_MESSAGE_NAME_CHARACTERS = 64
MAX_STOP_SEQUENCES = 128
MAX_STOP_SEQUENCE_CHARACTERS = 2000
MAX_REFUSED_VALUE_CHARACTERS = 64
"""How much of a refused value a message quotes."""
MAX_REFUSED_KEY_CHARACTERS = 1000
"""How much of a client's key a message's path quotes: a body may be one key of 36 MiB, its refusal may not."""

MIN_OUTPUT_TOKENS = 16
MAX_CHAT_OUTPUT_TOKENS = 16_384
DEFAULT_CHAT_OUTPUT_TOKENS = 512
"""OpenAI clients usually leave the limit out, and the text default of 80 cuts a reply short."""
DEFAULT_CONTEXT_TOKENS = 2048
MIN_CONTEXT_TOKENS = 80
MAX_CONTEXT_TOKENS = 1_048_576
"""Both ends are the text route's (HOP-37)."""
SIZING_CHARACTERS_PER_TOKEN = 3
"""Sizing is cautious with 3 characters a token; the kudos formula reckons with 4."""

# -- Screening ---------------------------------------------------------------------------------------------------------
MAX_FILTER_PATTERN_CHARACTERS = 1000
MAX_FILTER_REPLACEMENT_CHARACTERS = 255
MAX_FILTER_DESCRIPTION_CHARACTERS = 500
MAX_FILTER_COUNT = 500
"""Filters of all types: each is one more search of every text."""
SCREENING_SECONDS = 2
"""What screening may take for all texts of one request, which is refused when it takes longer."""
MAX_SCREENED_CHARACTERS = MAX_CHAT_TEXT_BYTES
"""What the texts of one request may hold once rewritten; replacements can be longer than what they replace."""
MAX_FOLDED_CHARACTERS = 2 * MAX_SCREENED_CHARACTERS
"""What a prompt may be once its characters are folded: its texts, and beside them role labels and tools."""
FILTER_TRIAL_SECONDS = 0.5
"""What a new filter may take on each of a few hostile texts before it is taken."""
# -- Text requests -----------------------------------------------------------------------------------------------------
MAX_TEXT_BODY_BYTES = 4 * MIB
"""A text submit: 1 MiB of prompt, escaped, and its models."""
MAX_PROMPT_BYTES = MAX_CHAT_TEXT_BYTES
"""UTF-8 bytes of a prompt: what a chat request may hold in all its messages."""
MAX_TEXT_MODEL_COUNT = 200
MAX_TEXT_GENERATIONS = 20
MAX_TEXT_OUTPUT_TOKENS = 4096
DEFAULT_TEXT_OUTPUT_TOKENS = 80
MAX_NAMED_WORKERS = 5
"""Of more workers in `workers` the first are kept, silently, as text clients know it."""
MIN_SAMPLERS = 7
"""An order of samplers names at least this many different ones."""
MAX_SAMPLER_ORDER = 100
MAX_WEBHOOK_CHARACTERS = 1024
MAX_PROXIED_ACCOUNT_CHARACTERS = 255

# -- Images ------------------------------------------------------------------------------------------------------------
MAX_CHAT_IMAGE_COUNT = 20
MAX_CHAT_IMAGE_BYTES = 5 * MIB
"""One image, decoded: the cap of a source image on image requests."""
MAX_CHAT_IMAGE_TOTAL_BYTES = 25 * MIB
"""All images, decoded; every request is held to it before its user is known (IMG-17)."""

# -- Tools and response formats ----------------------------------------------------------------------------------------
MAX_CHAT_TOOL_COUNT = 128
MAX_CHAT_TOOL_CALL_COUNT = 128
"""Calls of one assistant message."""
MAX_CHAT_TOOL_SPEC_BYTES = 256 * KIB
"""The compact JSON of `tools`, `tool_choice` and `response_format` together (TLS-46)."""
MAX_CHAT_SCHEMA_NESTING = 10
"""Levels below a schema's root, OpenAI's limit for strict schemas."""
MAX_CHAT_SCHEMA_CONTAINERS = 1 + 2 * MAX_CHAT_SCHEMA_NESTING + 1
"""The same limit in JSON containers: the root, two for a level (a map of properties, a schema), one inside (TLS-33)."""
MAX_TOOL_CALL_ID_CHARACTERS = 256
FUNCTION_NAME_PATTERN = "[A-Za-z0-9_-]{1,64}"
UNKEPT_INTEGER = 2**64
"""From this magnitude on JSON integers arrive rounded, silently; stored JSON is refused rather than altered."""

# -- Clients -----------------------------------------------------------------------------------------------------------
DEFAULT_CLIENT_AGENT = "unknown:0:unknown"
MAX_CLIENT_AGENT_CHARACTERS = 255

# -- Workers -----------------------------------------------------------------------------------------------------------
ONLINE_SECONDS = 300
"""A worker that popped within this time is online."""
UPTIME_REWARD_SECONDS = 600
"""A worker that was online for longer since its last reward gets one."""
CHECK_IN_WINDOW_SECONDS = 30
"""A pop this soon after the last check-in leaves all but the chat declaration of the worker's row unwritten."""
TEXT_JOB_LEASE_SECONDS = 150
TEXT_JOB_PREPARATION_SECONDS = 30
"""What of a lease a worker needs before it generates."""
UNMEASURED_TOKENS_PER_SECOND = 10
"""How fast a worker is taken to be until its first replies were measured."""
MAX_WORKER_NAME_CHARACTERS = 100
MAX_WORKER_MODELS = 200
MAX_BRIDGE_AGENT_CHARACTERS = 1000
MAX_WORKER_THREADS = 50
MAX_POP_AMOUNT = 20
MAX_WORKER_MESSAGES = 50
"""What a pop carries at most of what operators tell its worker."""
MAX_WORKER_MESSAGE_CHARACTERS = 10_240
"""Of one of them."""
MAX_PRIORITY_USERS = 100
"""Of more names in `priority_usernames` the first are kept."""
MAX_WORKERS = 4
"""Of one owner who is not trusted yet."""
MAX_WORKERS_TRUSTED = 21
MAX_WORKERS_AT_ADDRESS = 4
MAX_WORKERS_AT_ADDRESS_TRUSTED = 21
MAX_INTEGER = 2**31 - 1
"""What a column of the database holds."""

# -- Replies -----------------------------------------------------------------------------------------------------------
MAX_NATIVE_FINISH_REASON_CHARACTERS = 32
MAX_REPORTED_TOKENS = 10_000_000
MAX_METADATA = 50
"""Entries of a text reply's `gen_metadata`."""
MAX_METADATA_REFERENCE_CHARACTERS = 255
MAX_REASONING_BYTES = MAX_CHAT_TEXT_BYTES
MAX_FAULT_REASON_CHARACTERS = 1000
"""What a request keeps of the message its reply was refused with."""
FAULTED_GENERATIONS_LIMIT = 2
"""With one more generation given up, a request is faulted (FLW-26)."""
MAX_REPLY_NESTING = 512
"""Levels of a reply's JSON: of more the interpreter's stack would decide, and it is not always the same."""
SCHEMA_SECONDS = 2
"""What holding a reply to its request's schema may take; a schema that takes longer counts as one that is none."""
MAX_SCHEMA_PATTERN_CHARACTERS = 4096
"""The compiler takes up to 0.1 s for as many, and nothing can interrupt it."""
MAX_SCHEMA_PATTERN_STEPS = 20_000
"""What all patterns of a schema are compiled to: a repeat is written out as often as it must occur."""

# -- Requests' life ----------------------------------------------------------------------------------------------------
REQUEST_LIFE_SECONDS = 20 * 60
"""A request expires this long after its activation or its last pop or reply, whichever is later."""
EXACT_QUEUE_POSITIONS = 1000

assert MAX_CHAT_IMAGE_TOTAL_BYTES * 4 // 3 + MAX_CHAT_TEXT_BYTES + MAX_CHAT_TOOL_SPEC_BYTES < MAX_CHAT_BODY_BYTES
assert MAX_CHAT_IMAGE_BYTES <= MAX_CHAT_IMAGE_TOTAL_BYTES <= MAX_CHAT_IMAGE_COUNT * MAX_CHAT_IMAGE_BYTES
assert MAX_CHAT_TOOL_SPEC_BYTES // 2 < MAX_JSON_SEPARATORS
assert MIN_CONTEXT_TOKENS <= DEFAULT_CONTEXT_TOKENS <= MAX_CONTEXT_TOKENS
assert MAX_CHAT_OUTPUT_TOKENS <= MAX_CONTEXT_TOKENS
assert FILTER_TRIAL_SECONDS < SCREENING_SECONDS
assert 2 * MAX_REASONING_BYTES < MAX_REPLY_BODY_BYTES
assert MAX_PROMPT_BYTES < MAX_TEXT_BODY_BYTES
assert MIN_OUTPUT_TOKENS <= DEFAULT_TEXT_OUTPUT_TOKENS <= MAX_TEXT_OUTPUT_TOKENS
assert MIN_OUTPUT_TOKENS <= DEFAULT_CHAT_OUTPUT_TOKENS <= MAX_CHAT_OUTPUT_TOKENS
assert DEFAULT_CHAT_OUTPUT_TOKENS < DEFAULT_CONTEXT_TOKENS
assert CHECK_IN_WINDOW_SECONDS < ONLINE_SECONDS < UPTIME_REWARD_SECONDS
assert TEXT_JOB_PREPARATION_SECONDS < TEXT_JOB_LEASE_SECONDS < REQUEST_LIFE_SECONDS
