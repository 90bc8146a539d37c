"""The groups a metric counts output lengths in."""

LENGTH_BUCKETS = ((512, "<=512"), (1024, "513-1024"), (2048, "1025-2048"), (4096, "2049-4096"))
"""The largest length of each group; the first is what stays free under any load, the last what an idle fleet gives."""
LONGEST_BUCKET = ">4096"


def bucket_of(max_length: int) -> str:
    """Return the label of the group a length falls in (CTX-49)."""
    return next((label for largest, label in LENGTH_BUCKETS if max_length <= largest), LONGEST_BUCKET)
