"""Which addresses belong to the public internet; all others belong to somebody's inside."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_UNICAST = IPv6Network("2000::/3")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_INSIDE = (
    # Special purposes; the standard library of some Python versions knows only parts of it.
    IPv4Network("192.0.0.0/24"),
    # What was the relay of 6to4.
    IPv4Network("192.88.99.0/24"),
    # A cloud's own service for its guests, on an address that looks public.
    IPv4Network("168.63.129.16/32"),
)


def is_public(text: str) -> bool:
    """Whether anybody on the internet could be at this address; what is no address is not public."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return _public_4(address) if isinstance(address, IPv4Address) else _public_6(address)


def _public_4(address: IPv4Address) -> bool:
    inside = address.is_multicast or address.is_reserved or any(address in each for each in _INSIDE)
    return address.is_global and not inside


def _public_6(address: IPv6Address) -> bool:
    # An address that carries an older one leads where that one leads.
    if address in _TRANSLATED:
        return _public_4(IPv4Address(int(address) & 0xFFFF_FFFF))
    if address.sixtofour is not None:
        return _public_4(address.sixtofour)
    # The rest of what carries one (mapped, compatible, Teredo) is not asked for by anybody honest.
    return address in _UNICAST and address.is_global and address.teredo is None
