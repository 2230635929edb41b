"""Allowed hosts and public addresses."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.settings import SettingsError, parse_settings
from jackfield_web.hosts import HostRules, is_public
from jackfield_web.settings import WebSettings


def hosts_of(allow: list[str], deny: Sequence[str] = ()) -> HostRules:
    return parse_settings(WebSettings, {"allow": allow, "deny": deny}, "[capabilities.web]").hosts


@pytest.mark.parametrize(
    ("allow", "host", "port", "permitted"),
    [
        (["docs.example.com"], "docs.example.com", 443, True),
        (["docs.example.com"], "docs.example.com", 80, True),
        (["docs.example.com"], "DOCS.example.com.", 443, True),
        (["docs.example.com"], "docs.example.com", 8443, False),
        (["docs.example.com:8443"], "docs.example.com", 8443, True),
        (["docs.example.com:8443"], "docs.example.com", 443, False),
        (["docs.example.com"], "example.com", 443, False),
        (["docs.example.com"], "evil-docs.example.com", 443, False),
        (["docs.example.com"], "docs.example.com.evil.example", 443, False),
        (["*.example.com"], "docs.example.com", 443, True),
        (["*.example.com"], "a.b.example.com", 443, True),
        (["*.example.com"], "example.com", 443, False),
        (["*.example.com"], "notexample.com", 443, False),
        (["*"], "anything.example", 80, True),
        (["*"], "anything.example", 22, False),
        (["*:8080"], "anything.example", 8080, True),
        (["127.0.0.1:9000"], "127.0.0.1", 9000, True),
        (["[::1]:9000"], "::1", 9000, True),
        (["[0:0:0:0:0:0:0:1]:9000"], "::1", 9000, True),
        ([], "docs.example.com", 443, False),
    ],
)
def test_a_host_is_allowed_if_the_list_matches(
    allow: list[str], host: str, port: int, permitted: bool
) -> None:
    assert hosts_of(allow).permits(host, port) is permitted


def test_denial_takes_precedence_over_permission() -> None:
    hosts = hosts_of(["*", "wiki.example.net:8080"], ["*.example.net", "tracker.example"])
    assert not hosts.permits("wiki.example.net", 8080)
    assert not hosts.permits("tracker.example", 443)
    assert hosts.permits("docs.example.com", 443)


def test_only_a_host_listed_by_its_full_name_may_be_internal() -> None:
    hosts = hosts_of(["*", "*.example.net", "wiki.example.net:8080"])
    assert hosts.names("wiki.example.net", 8080)
    assert not hosts.names("wiki.example.net", 80)
    assert not hosts.names("docs.example.net", 80)


@pytest.mark.parametrize(
    "entry",
    ["https://docs.example.com", "docs.example.com/path", "docs.*.com", "", "*example.com", "a b", "x:0",
     "x:70000", "u@x", "[::1", 7, None],
)  # fmt: skip
def test_an_invalid_host_is_rejected_with_an_example(entry: Any) -> None:
    for name in ("allow", "deny"):
        with pytest.raises(SettingsError) as raised:
            parse_settings(WebSettings, {name: [entry]}, "[capabilities.web]")
        fault = f"[capabilities.web] {name}[0]: expected a host without http:// and path, such as "
        assert str(raised.value).startswith(fault)
        assert str(raised.value).endswith(f'or "*", got {entry!r}')


def test_a_port_cannot_be_denied() -> None:
    with pytest.raises(SettingsError, match=r"deny\[0\]: 'x.example:80' names a port; .* on all ports"):
        hosts_of([], ["x.example:80"])


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001:80e::200e",
     "64:ff9b::8.8.8.8", "2002:808:808::1"],
)  # fmt: skip
def test_an_internet_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.192", "192.0.2.1", "198.18.0.1",
        "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
        "192.88.99.1", "168.63.129.16",
        "::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1",
        "2001:db8::1", "100::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1",
        "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::7f00:1", "2002:7f00:1::1",
        "2002:a9fe:a9fe::", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "localhost", "", "1.2.3", "0x7f.1",
    ],
)  # fmt: skip
def test_internal_and_reserved_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_embedded_ipv4_addresses_are_checked_like_plain_ones(address: IPv4Address) -> None:
    number = int(address)
    translated = IPv6Address((0x0064_FF9B << 96) | number)
    six_to_four = IPv6Address((0x2002 << 112) | (number << 80))
    assert is_public(str(translated)) == is_public(str(address)) == is_public(str(six_to_four))
    assert not is_public(f"::ffff:{address}")


@given(st.ip_addresses())
def test_addresses_private_to_the_standard_library_are_never_public(
    address: IPv4Address | IPv6Address,
) -> None:
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        assert not is_public(str(address))
