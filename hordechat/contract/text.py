"""Strings of client JSON: what the database cannot hold is found or replaced without recursion."""

NUL = "\x00"
REPLACEMENT = "\ufffd"


def holds_nul(value: object) -> bool:
    """Return whether any string or key inside a JSON value holds a NUL character."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if NUL in item:
                return True
        elif isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False


def without_nul(text: str) -> str:
    """Return the text with each NUL character replaced (SUB-40)."""
    return text.replace(NUL, REPLACEMENT)
