"""IP addresses as what they stand for: one caller's, or the network of one customer of a provider."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

IPV6_PREFIX_BITS = 64
"""What one customer of a provider gets at least; each address of it alone would be a limit for nobody."""


def parse(text: str) -> Address:
    """Read an address; an IPv4 one that a server listening on both families shows as IPv6 is IPv4.

    Raises:
        ValueError: the text is no address.
    """
    address = ip_address(text)
    # `::ffff:192.0.2.1`; one /64 would hold all of them.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def caller_of(address: Address) -> Address | IPv6Network:
    """Return whom an address stands for: itself in IPv4, its /64 in IPv6."""
    if isinstance(address, IPv4Address):
        return address
    network = ip_network((address, IPV6_PREFIX_BITS), strict=False)
    assert isinstance(network, IPv6Network)
    return network
