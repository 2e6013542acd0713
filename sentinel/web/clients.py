"""Which addresses count as one client. Pure."""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address

LOOPBACK_NETWORK = IPv4Network("127.0.0.0/8")
"""Every user of this host may connect from any of these addresses."""

IPV6_HOST_PREFIX_BITS = 64
"""A host that has one address of such a network can use any other address of it (RFC 4291, RFC
8981)."""


@lru_cache(maxsize=4096)
def client_of(address: str) -> str:
    """The client behind an address, as a key for limits. A text that is not an address is its own
    client."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.version == 6 and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    if ip.version == 6:
        own_host = "::1" if ip.is_loopback else ""
        return own_host or str(IPv6Network((int(ip), IPV6_HOST_PREFIX_BITS), strict=False))
    return str(LOOPBACK_NETWORK if ip in LOOPBACK_NETWORK else ip)
