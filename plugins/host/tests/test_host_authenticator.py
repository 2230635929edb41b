"""Authentication by host name, origin and token."""

from __future__ import annotations

from typing import Any

import pytest
from host_harness import token_protocol
from hypothesis import given
from hypothesis import strategies as st
from jackfield.settings import SettingsError, parse_settings
from jackfield_host.security.api_keys import digest, new_key
from jackfield_host.security.auth_errors import AuthError
from jackfield_host.security.authenticator import (
    LOCAL,
    MAX_TOKEN,
    Authenticator,
    RequestInfo,
    accepted_subprotocol,
    supports_protocol,
)
from jackfield_host.security.origins import is_loopback, parse_authority, parse_origin
from jackfield_host.settings import AccessSettings
from jackfield_sessions.admission import Identity
from joserfc import jwt
from joserfc.jwk import OctKey
from starlette.datastructures import Headers

KEY = new_key("phone", "ada", ["operator"]).key
KEYS = {"phone": {"digest": digest(KEY), "user": "ada", "roles": ["operator"]}}
BEARER = f"Bearer {KEY}"
SECRET = "a secret of more than thirty-two bytes"


def access(**said: Any) -> AccessSettings:
    return parse_settings(AccessSettings, said, "[host]")


def request_info(
    *,
    websocket: bool = False,
    scheme: str = "http",
    client: str | None = "127.0.0.1",
    http_version: str = "1.1",
    **headers: str,
) -> RequestInfo:
    named = {"host": "localhost:8000", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return RequestInfo(Headers(named), scheme, client, websocket, http_version)


def code(authenticator: Authenticator, request: RequestInfo) -> str:
    with pytest.raises(AuthError) as refused:
        authenticator.authenticate(request)
    assert refused.value.status == (401 if "token" in refused.value.code else 403)
    assert KEY not in str(refused.value)
    return refused.value.code


OPEN = Authenticator(access())
GUARDED = Authenticator(access(keys=KEYS))
BEYOND = Authenticator(access(address="0.0.0.0", keys=KEYS))


def test_without_tokens_every_client_on_this_machine_is_local() -> None:
    assert OPEN.authenticate(request_info()) == LOCAL
    assert OPEN.authenticate(request_info(websocket=True, origin="http://localhost:8000")).user == "local"
    assert OPEN.authenticate(request_info(client=None)) == LOCAL
    assert OPEN.authenticate(request_info(client="::1", host="[::1]:8000")) == LOCAL
    assert OPEN.authenticate(request_info(client="::ffff:127.0.0.1")) == LOCAL


def test_a_host_with_a_key_requires_it_everywhere() -> None:
    assert code(GUARDED, request_info()) == "missing_token"
    assert code(GUARDED, request_info(websocket=True, origin="http://localhost:8000")) == "missing_token"
    assert GUARDED.authenticate(request_info(authorization=BEARER)) == Identity(
        "ada", frozenset({"operator"})
    )


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_bearer_scheme_is_case_insensitive(scheme: str) -> None:
    assert GUARDED.authenticate(request_info(authorization=f"{scheme}  {KEY} ")).user == "ada"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", "missing_token"),
        ("Basic YWRhOmFkYQ==", "missing_token"),
        ("<key>", "missing_token"),
        ("Bearer", "bad_token"),
        ("Bearer ", "bad_token"),
        ("Bearer x", "bad_token"),
        ("Bearer <key> <key>", "bad_token"),
        ("Bearer <key>x", "bad_token"),
        ("Bearer jf_phone_" + "A" * MAX_TOKEN, "bad_token"),
        ("Bearer ключ", "bad_token"),
        ("Bearer eyJhbGciOiJub25lIn0.e30.", "bad_token"),
    ],
)
def test_headers_without_a_valid_token_are_refused(header: str, expected: str) -> None:
    raw = [(b"host", b"localhost"), (b"authorization", header.replace("<key>", KEY).encode())]
    assert code(GUARDED, RequestInfo(Headers(raw=raw), "http", "127.0.0.1", False)) == expected


def test_two_different_tokens_are_refused_and_the_same_token_twice_is_accepted() -> None:
    raw = [
        (b"host", b"localhost"),
        (b"authorization", BEARER.encode()),
        (b"authorization", b"Bearer jf_phone_other"),
    ]
    assert code(GUARDED, RequestInfo(Headers(raw=raw), "http", None, False)) == "bad_token"
    both = request_info(websocket=True, authorization=BEARER, sec_websocket_protocol=token_protocol(KEY))
    assert GUARDED.authenticate(both).user == "ada"


def test_a_browser_sends_its_token_as_a_subprotocol() -> None:
    offers = f"jackfield.1, {token_protocol(KEY)}"
    request = request_info(websocket=True, origin="http://localhost:8000", sec_websocket_protocol=offers)
    assert GUARDED.authenticate(request).user == "ada"
    assert accepted_subprotocol(request.headers) == "jackfield.1"
    # A plain request has no subprotocols.
    assert code(GUARDED, request_info(sec_websocket_protocol=offers)) == "missing_token"


def test_a_token_is_never_the_accepted_subprotocol() -> None:
    assert accepted_subprotocol(Headers({"sec-websocket-protocol": token_protocol(KEY)})) is None
    assert accepted_subprotocol(Headers({})) is None


@pytest.mark.parametrize(
    ("offers", "can"),
    [
        (None, True),
        ("jackfield.1", True),
        ("jackfield.2, jackfield.1", True),
        (token_protocol(KEY), True),
        ("jackfield.2", False),
        (f"graphql-ws, {token_protocol(KEY)}", False),
    ],
    ids=["none", "ours", "ours-last", "a-token", "another", "another-and-a-token"],
)
def test_a_client_that_offers_only_other_subprotocols_is_not_supported(offers: str | None, can: bool) -> None:
    assert supports_protocol(Headers({"sec-websocket-protocol": offers} if offers else {})) is can


@pytest.mark.parametrize("packed", ["", "!!", "A", "/+", "gICA", "YQ==YQ=="])
def test_a_subprotocol_with_an_invalid_token_is_refused(packed: str) -> None:
    request = request_info(websocket=True, sec_websocket_protocol=f"jackfield.1, jackfield.token.{packed}")
    assert code(GUARDED, request) == "bad_token"


def test_a_token_in_the_url_is_ignored() -> None:
    scope = {
        "type": "websocket",
        "scheme": "ws",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
        "query_string": f"token={KEY}&access_token={KEY}".encode(),
    }
    assert code(GUARDED, RequestInfo.from_scope(scope)) == "missing_token"


def test_the_longest_token_fits_a_line_of_a_handshake() -> None:
    assert len("sec-websocket-protocol: jackfield.1, " + token_protocol("x" * MAX_TOKEN)) < 8192


def test_api_keys_and_jwts_work_together() -> None:
    table = {"algorithms": ["HS256"], "secret_env": "SIGN", "audience": "jackfield"}
    authenticator = Authenticator(access(keys=KEYS, jwt=table), {"SIGN": SECRET}, lambda: 1000.0)
    claims = {"sub": "eve", "aud": "jackfield", "exp": 2000}
    token = jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET))
    assert authenticator.authenticate(request_info(authorization=f"Bearer {token}"))[::4] == ("eve", 2030.0)
    assert authenticator.authenticate(request_info(authorization=BEARER)).user == "ada"
    late = Authenticator(access(jwt=table), {"SIGN": SECRET}, lambda: 3000.0)
    assert code(late, request_info(authorization=f"Bearer {token}")) == "expired_token"
    assert code(late, request_info(authorization=BEARER)) == "bad_token"


@pytest.mark.parametrize(
    "foreign",
    [
        "https://evil.example",
        "http://localhost:3000",
        "https://localhost",
        "http://localhost",
        "http://localhost.evil.example:8000",
        "http://evil-localhost:8000",
        "http://127.0.0.1.evil.example:8000",
        "http://user@localhost:8000",
        "http://localhost:8000/",
        "http://localhost:8000@evil.example",
        "http://LOCALHOST:8000\\.evil.example",
        "http://[::1:8000",
        "ws://localhost:8000",
        "file://",
        "null",
        "",
        "*",
        "http://localhost:8000 http://evil.example",
        "chrome-extension://abcdef",
    ],
)
@pytest.mark.parametrize("websocket", [True, False])
def test_pages_of_other_origins_are_refused(foreign: str, websocket: bool) -> None:
    assert code(OPEN, request_info(origin=foreign, websocket=websocket)) == "foreign_origin"
    # A valid token does not admit a page of another origin.
    assert (
        code(GUARDED, request_info(origin=foreign, websocket=websocket, authorization=BEARER))
        == "foreign_origin"
    )


@pytest.mark.parametrize(
    "own", ["http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000", "HTTP://LocalHost:8000"]
)
def test_pages_of_this_machine_and_port_are_accepted(own: str) -> None:
    for host in ("localhost:8000", "127.0.0.1:8000", "[::1]:8000"):
        assert OPEN.authenticate(request_info(origin=own, host=host, websocket=True)) == LOCAL


def test_two_origins_are_refused() -> None:
    raw = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"origin", b"http://evil.example")]
    assert code(OPEN, RequestInfo(Headers(raw=raw), "http", None, True)) == "foreign_origin"


def test_a_websocket_without_an_origin_requires_a_token() -> None:
    assert code(OPEN, request_info(websocket=True)) == "missing_origin"
    # A host without tokens accepts no token.
    assert code(OPEN, request_info(websocket=True, authorization=BEARER)) == "missing_origin"
    assert GUARDED.authenticate(request_info(websocket=True, authorization=BEARER)).user == "ada"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_a_cross_site_request_without_an_origin_is_refused(site: str) -> None:
    assert code(OPEN, request_info(sec_fetch_site=site)) == "foreign_origin"
    assert (
        code(OPEN, request_info(sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="document"))
        == "foreign_origin"
    )


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_a_request_from_the_same_site_is_accepted(site: str) -> None:
    assert OPEN.authenticate(request_info(sec_fetch_site=site)) == LOCAL


def test_links_from_other_sites_reach_only_pages() -> None:
    link = request_info(sec_fetch_site="cross-site", sec_fetch_mode="navigate", sec_fetch_dest="document")
    OPEN.check_origin(link, page=True)
    for dest, mode in [("iframe", "navigate"), ("image", "no-cors"), ("document", "cors")]:
        with pytest.raises(AuthError):
            OPEN.check_origin(
                request_info(sec_fetch_site="cross-site", sec_fetch_mode=mode, sec_fetch_dest=dest), page=True
            )
    with pytest.raises(AuthError):
        OPEN.check_origin(link)


def test_public_endpoints_check_host_and_origin_without_a_token() -> None:
    GUARDED.check_origin(request_info())
    with pytest.raises(AuthError, match="origin"):
        GUARDED.check_origin(request_info(origin="https://evil.example"))
    with pytest.raises(AuthError, match="Host"):
        GUARDED.check_origin(request_info(host="evil.example"))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "127.0.0.2",
        "0.0.0.0:8000",
        "192.168.1.2",
        "localhost.",
        "[::]",
        "localhost@evil.example",
        "localhost:8000:1",
        "localhost:",
        "localhost:99999",
        "localhost, evil.example",
        " ",
        "",
        "[::ffff:127.0.0.1]",
        "\u217cocalhost",
    ],
)
def test_dns_rebinding_is_refused(host: str) -> None:
    for authenticator in (OPEN, GUARDED):
        raw = [
            (b"host", host.encode()),
            (b"authorization", BEARER.encode()),
            (b"origin", f"http://{host}".encode()),
        ]
        assert code(authenticator, RequestInfo(Headers(raw=raw), "http", "127.0.0.1", True)) == "foreign_host"


def test_a_request_must_have_one_host_header() -> None:
    for raw in ([], [(b"host", b"localhost"), (b"host", b"evil.example")]):
        assert code(OPEN, RequestInfo(Headers(raw=raw), "http", "127.0.0.1", False)) == "foreign_host"


def test_a_public_host_accepts_any_name_with_a_token() -> None:
    request = request_info(
        host="agent.example", origin="https://agent.example", scheme="https", authorization=BEARER
    )
    assert BEYOND.authenticate(request).user == "ada"
    assert code(BEYOND, request_info(host="agent.example", client="203.0.113.9")) == "missing_token"


def test_only_configured_host_names_are_accepted() -> None:
    beyond = Authenticator(access(address="0.0.0.0", keys=KEYS, hosts=["Agent.Example"]))
    assert beyond.authenticate(request_info(host="agent.EXAMPLE:8443", authorization=BEARER)).user == "ada"
    assert code(beyond, request_info(host="evil.example", authorization=BEARER)) == "foreign_host"
    assert code(beyond, request_info(host="localhost", authorization=BEARER)) == "foreign_host"
    # Behind a proxy on the same machine, the machine's own names stay valid.
    behind = Authenticator(access(keys=KEYS, hosts=["agent.example"]))
    for host in ("agent.example", "localhost:8000"):
        assert (
            behind.authenticate(request_info(host=host, client="203.0.113.9", authorization=BEARER)).user
            == "ada"
        )


@pytest.mark.parametrize(
    ("scheme", "host", "own"),
    [
        ("https", "agent.example", "https://agent.example"),
        ("https", "agent.example:443", "https://agent.example"),
        ("https", "agent.example", "https://agent.example:443"),
        ("http", "agent.example:80", "http://agent.example"),
        ("http", "agent.example:8000", "http://AGENT.example:8000"),
    ],
)
def test_the_own_origin_is_recognised_in_every_spelling(scheme: str, host: str, own: str) -> None:
    request = request_info(scheme=scheme, host=host, origin=own, websocket=True, authorization=BEARER)
    assert BEYOND.authenticate(request).user == "ada"


@pytest.mark.parametrize(
    "foreign",
    ["http://agent.example", "https://agent.example:8443", "https://localhost", "https://127.0.0.1"],
)
def test_another_scheme_or_port_is_a_foreign_origin(foreign: str) -> None:
    request = request_info(scheme="https", host="agent.example", origin=foreign, authorization=BEARER)
    assert code(BEYOND, request) == "foreign_origin"


def test_a_public_host_does_not_accept_loopback_origins() -> None:
    request = request_info(host="127.0.0.1:8000", origin="http://localhost:8000", authorization=BEARER)
    assert code(BEYOND, request) == "foreign_origin"


def test_configured_origins_are_accepted() -> None:
    authenticator = Authenticator(
        access(keys=KEYS, origins=["https://Console.Example:443", "http://localhost:5173"])
    )
    for page in ("https://console.example", "http://localhost:5173"):
        assert (
            authenticator.authenticate(request_info(origin=page, websocket=True, authorization=BEARER)).user
            == "ada"
        )
    assert (
        code(authenticator, request_info(origin="http://console.example", authorization=BEARER))
        == "foreign_origin"
    )
    assert (
        code(authenticator, request_info(origin="http://127.0.0.1:5173", authorization=BEARER))
        == "foreign_origin"
    )


@pytest.mark.parametrize(
    "told",
    [
        {"client": "203.0.113.9"},
        {"client": "somewhere"},
        {"x_forwarded_for": "203.0.113.9"},
        {"x_forwarded_for": "127.0.0.1, 203.0.113.9"},
        {"x_forwarded_for": "127.0.0.1"},
        {"x_forwarded_for": ""},
        {"x_forwarded_proto": "https"},
        {"x_forwarded": "for=203.0.113.9"},
        {"forwarded": "for=203.0.113.9"},
        {"via": "1.1 edge"},
        {"cdn_loop": "edge"},
        {"x_real_ip": "127.0.0.1"},
        {"true_client_ip": "203.0.113.9"},
        {"cf_connecting_ip": "203.0.113.9"},
        {"cf_connecting_ipv6": "2001:db8::1"},
        {"x_cluster_client_ip": "203.0.113.9"},
        {"x_azure_clientip": "203.0.113.9"},
        {"client_ip": "203.0.113.9"},
        {"x_appengine_user_ip": "203.0.113.9"},
        {"x_original_host": "agent.example"},
        {"x_original_url": "/status"},
        {"x_envoy_external_address": "203.0.113.9"},
        {"x_proxyuser_ip": "203.0.113.9"},
        {"http_version": "1.0"},
    ],
    ids=str,
)
def test_requests_through_a_proxy_are_not_local(told: dict[str, str]) -> None:
    assert code(OPEN, request_info(**told)) == "not_local"  # type: ignore[arg-type]
    assert GUARDED.authenticate(request_info(authorization=BEARER, **told)).user == "ada"  # type: ignore[arg-type]


def test_ordinary_client_headers_do_not_count_as_a_proxy() -> None:
    sent = (
        "accept accept-encoding accept-language cache-control connection content-length content-type cookie "
        "dnt if-none-match keep-alive last-event-id pragma priority range referer sec-ch-ua sec-fetch-mode "
        "sec-websocket-key sec-websocket-version te traceparent upgrade upgrade-insecure-requests user-agent "
        "x-client-data x-client-version x-request-id x-requested-with x-user-agent"
    )
    headers: dict[str, Any] = {name.replace("-", "_"): "x" for name in sent.split()}
    assert OPEN.authenticate(request_info(**headers)).user == "local"


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "::", "", "192.168.1.2", "agent.example", "127.0.0.1.evil.example"]
)
def test_a_publicly_reachable_host_does_not_start_without_a_token(address: str) -> None:
    with pytest.raises(SettingsError, match="jackfield key NAME") as error:
        access(address=address)
    assert str(error.value).startswith(
        f"[host] address: other machines can reach {address!r}, but no token is"
    )
    assert access(address=address, keys=KEYS).address == address


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_a_host_on_this_machine_starts_without_a_token(address: str) -> None:
    assert Authenticator(access(address=address)).authenticate(request_info()) == LOCAL
    assert Authenticator(access(address=address, hosts=["localhost"])).authenticate(request_info()) == LOCAL


def test_a_public_host_name_requires_a_token_too() -> None:
    with pytest.raises(
        SettingsError, match=r"^\[host\] hosts: other machines reach this host as 'agent\.example'"
    ):
        access(hosts=["localhost", "agent.example"])


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ({"origins": ["*"]}, "origins[0]: expected an origin"),
        ({"origins": ["console.example"]}, "origins[0]: expected an origin"),
        ({"origins": ["https://console.example/path"]}, "origins[0]: expected an origin"),
        ({"origins": ["null"]}, "origins[0]: expected an origin"),
        ({"hosts": ["*"]}, "hosts[0]: expected the name of a host"),
        ({"hosts": ["https://agent.example"]}, "hosts[0]: expected the name of a host"),
        ({"hosts": ["agent.example:8000"]}, "hosts[0]: expected the name of a host"),
        ({"host": ["agent.example"]}, "host: unknown setting; did you mean 'hosts'?"),
    ],
)
def test_origins_and_hosts_that_match_nothing_are_refused(table: dict[str, Any], place: str) -> None:
    with pytest.raises(SettingsError) as raised:
        access(**table)
    assert str(raised.value).startswith(f"[host] {place}")


def test_a_refusal_has_the_www_authenticate_header() -> None:
    assert AuthError("missing_token").headers == {"WWW-Authenticate": 'Bearer realm="jackfield"'}
    assert 'error="invalid_token"' in AuthError("expired_token").headers["WWW-Authenticate"]
    assert AuthError("foreign_origin").headers == {}


@given(st.text(max_size=60))
def test_invalid_names_are_never_parsed(text: str) -> None:
    named, page = parse_authority(text), parse_origin(text)
    assert named is None or named.name in text.lower() or named.name.startswith("[")
    assert page is None or parse_origin(str(page)) == page
    assert isinstance(is_loopback(text), bool)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["host", "origin", "authorization", "sec-websocket-protocol"]),
            st.binary(max_size=60),
        )
    )
)
def test_arbitrary_headers_never_break_or_bypass_authentication(headers: list[tuple[str, bytes]]) -> None:
    raw = [(name.encode(), value) for name, value in headers]
    with pytest.raises(AuthError):
        GUARDED.authenticate(RequestInfo(Headers(raw=raw), "http", "127.0.0.1", True))
