"""A stand-alone client that connects a model on someone's own GPU to a horde; it never imports Django."""

VERSION = "0.1.0"
AGENT = f"hordechat bridge:{VERSION}:"
"""Name, version and project address, as the horde wants them; the address is empty until the project has one."""
