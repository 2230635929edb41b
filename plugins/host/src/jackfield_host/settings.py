"""The settings of the host: flags of `serve`, JACKFIELD_HOST_* variables, `[host]` in the settings file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from jackfield.contract.context import Mode
from jackfield.host_reports import MAX_NAME as MAX_HOST_NAME
from jackfield.host_reports import NAME
from jackfield.settings import (
    EnvironmentVariable,
    FileTable,
    Format,
    Ge,
    Gt,
    Help,
    Le,
    MaxLen,
    MinLen,
    NonEmpty,
    Secret,
    SettingsFaults,
    Unit,
    merge_tables,
    read_environment,
    read_settings,
)
from jackfield.transport.protocol import VoiceSettings

from jackfield_host.security.origins import LOOPBACK_NAMES, is_loopback, parse_authority, parse_origin

PREFIX = "JACKFIELD_HOST_"
TABLE = "[host]"

Algorithm = Literal["RS256", "ES256", "EdDSA", "Ed25519", "HS256"]

MAX_NAME = 128
"""Maximum length of a user or role name, which becomes part of store keys and log lines."""

KEY_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
"""The name of an API key: a bare TOML key, without the underscores that separate the parts of an API key."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def is_valid_name(value: object) -> bool:
    """Return whether a value can be the name of a user or a role."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_NAME
        and value.isprintable()
        and value == value.strip()
    )


def _name(value: str) -> str:
    if not is_valid_name(value):
        raise ValueError
    return value


def _key_name(value: str) -> str:
    if not KEY_NAME.fullmatch(value):
        raise ValueError
    return value


def _host_name(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError
    return value


def _digest(value: str) -> str:
    if not _DIGEST.fullmatch(value):
        raise ValueError
    return value


def _origin(value: str) -> str:
    read = parse_origin(value)
    if read is None:
        raise ValueError
    return str(read)


def _host(value: str) -> str:
    read = parse_authority(value)
    if read is None or read.port is not None:
        raise ValueError
    return read.name


Name = Annotated[
    str,
    Format(f"a name of 1 to {MAX_NAME} printable characters without leading or trailing spaces", _name),
]
KeyName = Annotated[str, Format("a name of at most 32 lower-case letters, digits and hyphens", _key_name)]
Duration = Annotated[float, Gt(0), Unit("seconds")]
Delay = Annotated[float, Ge(0), Unit("seconds")]


@dataclass(frozen=True, slots=True)
class KeySettings:
    """One API key: a table `[host.keys.NAME]`, as `jackfield key NAME` prints it."""

    digest: Annotated[
        Annotated[str, Format("sha256: and 64 hexadecimal digits, as `jackfield key` prints it", _digest)],
        Secret(),
        Help("The SHA-256 hash of the key; the key itself is not stored."),
    ]
    user: Annotated[Name, Help("The user that the key identifies.")]
    roles: Annotated[tuple[Name, ...], MaxLen(64), Help("The roles that the key gives to its user.")] = ()
    mode: Annotated[
        Mode | None, Help("`text` or `voice` if the key is valid only for that mode.", default="both")
    ] = None
    organisation: Annotated[
        Name | None, Help("The organisation of the user, for toolsets.", default="none")
    ] = None
    toolset: Annotated[
        Name | None,
        Help("The toolset of sessions that the key opens.", default="the one for the user"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """The issuer whose JSON Web Tokens are accepted: the table `[host.jwt]`."""

    algorithms: Annotated[
        tuple[Algorithm, ...],
        MinLen(1),
        Help("The accepted signature algorithms; `HS256` cannot be combined with others."),
    ]
    key_file: Annotated[
        Path | None, Help("A file with the issuer's public key (PEM) or public keys (JWKS).")
    ] = None
    secret_env: Annotated[
        EnvironmentVariable | None,
        Help("The environment variable that holds the shared secret for `HS256`, at least 32 bytes."),
    ] = None
    audience: Annotated[NonEmpty, Help("The value that a token's `aud` must contain.")]
    issuer: Annotated[
        NonEmpty | None, Help("The value that a token's `iss` must have.", default="not checked")
    ] = None
    user_claim: Annotated[NonEmpty, Help("The claim that names the user.")] = "sub"
    roles_claim: Annotated[
        str, Help("The claim with the user's roles, a list or a space-separated string; empty: none.")
    ] = "roles"
    session_claim: Annotated[str, Help("The claim that restricts a token to one session; empty: none.")] = (
        "session"
    )
    mode_claim: Annotated[
        str, Help("The claim that restricts a token to `text` or `voice`; empty: none.")
    ] = "mode"
    organisation_claim: Annotated[
        str, Help("The claim with the user's organisation, such as `org_id`, for toolsets; empty: none.")
    ] = ""
    leeway: Annotated[
        int,
        Ge(0),
        Le(300),
        Unit("seconds"),
        Help("How much the clocks of issuer and host may differ."),
    ] = 30

    def __post_init__(self) -> None:
        # A key serves one kind of algorithm: if a public key counts as a shared secret, anyone can sign.
        if "HS256" not in self.algorithms:
            if self.key_file is None or self.secret_env is not None:
                raise ValueError(f"key_file: required for {', '.join(self.algorithms)}, without secret_env")
        elif len(set(self.algorithms)) > 1:
            raise ValueError("algorithms: HS256 cannot be combined with algorithms that use a public key")
        elif self.secret_env is None or self.key_file is not None:
            raise ValueError("secret_env: required for HS256, without key_file")


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Who may access the host, and as which user."""

    address: Annotated[
        str,
        Help(
            "The address to listen on. An address that other machines can reach requires a token; "
            "`127.0.0.1` does not."
        ),
    ] = "127.0.0.1"
    keys: Annotated[Mapping[KeyName, KeySettings], Secret(), Help("The accepted API keys, by name.")] = field(
        default_factory=dict
    )
    jwt: Annotated[
        JwtSettings | None, Secret(), Help("The issuer whose JSON Web Tokens are accepted.", default="none")
    ] = None
    origins: Annotated[
        tuple[
            Annotated[
                str, Format("an origin such as https://console.example or http://localhost:5173", _origin)
            ],
            ...,
        ],
        Help("Origins of other sites whose pages may use the host, such as `https://console.example`."),
    ] = ()
    hosts: Annotated[
        tuple[Annotated[str, Format("the name of a host such as agent.example, without a port", _host)], ...],
        Help(
            "Host names to accept, in addition to this machine's own; if empty, a host that other machines "
            "can reach accepts any name."
        ),
    ] = ()

    def __post_init__(self) -> None:
        if faults := [*self._exposed()]:
            raise ValueError("\n".join(faults))

    def _exposed(self) -> Iterator[str]:
        """Report a host that other machines can reach and that requires no token."""
        if self.keys or self.jwt:
            return
        fix = "add what `jackfield key NAME` prints to jackfield.toml, or set up [host.jwt]"
        if not is_loopback(self.address):
            yield (
                f"address: other machines can reach {self.address!r}, but no token is required; "
                f"{fix}, or listen on "
                'address = "127.0.0.1"'
            )
        elif beyond := [name for name in self.hosts if name not in LOOPBACK_NAMES]:
            yield f"hosts: other machines reach this host as {beyond[0]!r}, but no token is required; {fix}"


@dataclass(frozen=True, slots=True)
class HostSettings(AccessSettings):
    """`[host]`"""

    name: Annotated[
        Annotated[
            str,
            Format(
                f"a name of at most {MAX_HOST_NAME} letters, digits, dots, hyphens and underscores",
                _host_name,
            ),
        ]
        | None,
        Help(
            "The name of this host among those that share the store: in lists of hosts and sessions, in the "
            "audit log and in metrics. Each host needs its own.",
            default="the machine's name and a random suffix",
        ),
    ] = None
    port: Annotated[int, Ge(0), Le(65535), Help("The port to listen on; 0 picks a free one.")] = 8765
    workers: Annotated[
        int,
        Ge(1),
        Le(256),
        Help("How many processes serve the port together, for example one per core."),
    ] = 1
    proxies: Annotated[
        tuple[str, ...], Help("Addresses of proxies whose `X-Forwarded-*` headers are trusted.")
    ] = ()
    max_sessions: Annotated[int, Ge(1), Help("The maximum number of sessions at once on this host.")] = 1000
    sessions_per_user: Annotated[
        int, Ge(1), Help("The maximum number of sessions per user, across all hosts.")
    ] = 8
    start_seconds: Annotated[Duration, Help("A client must send its first message within this time.")] = 10.0
    grace_seconds: Annotated[
        Delay,
        Help("How long a session stays connected to its model after its last client has disconnected."),
    ] = 120.0
    idle_seconds: Annotated[Duration, Help("Idle sessions are closed after this time.")] = 1800.0
    session_seconds: Annotated[Duration, Help("The maximum duration of a session.")] = 14400.0
    drain_seconds: Annotated[
        Delay, Help("How long running tools may take to finish when the host stops.")
    ] = 30.0
    message_bytes: Annotated[
        int, Ge(1024), Unit("bytes"), Help("The maximum size of a client's message or audio frame.")
    ] = 65536
    request_bytes: Annotated[
        int, Ge(1024), Unit("bytes"), Help("The maximum size of an HTTP request body.")
    ] = 262144
    queue_bytes: Annotated[
        int,
        Ge(65536),
        Unit("bytes"),
        Help("How much data may wait for a slow client; beyond this the client is disconnected."),
    ] = 4194304
    messages_per_second: Annotated[
        float, Gt(0), Help("How many messages a client may send per second, on average.")
    ] = 10.0
    audio_ahead_seconds: Annotated[Duration, Help("How far a client's audio may run ahead of real time.")] = (
        10.0
    )
    requests_per_minute: Annotated[
        float,
        Gt(0),
        Help("How many HTTP requests and handshakes a user may make per minute, across all hosts."),
    ] = 600.0
    dead_air_seconds: Annotated[
        Duration,
        Help(
            "If a tool runs for longer than this, the user is notified that it is still running; a voice "
            "user hears one short sentence."
        ),
    ] = 4.0
    claim_checking: Annotated[
        Literal["correct", "report", "off"],
        Help(
            "If the assistant claims an action that no call performed: `correct` marks the answer and has "
            "the model correct itself, once per turn; `report` only marks it; `off` disables the check."
        ),
    ] = "correct"
    prune_seconds: Annotated[Duration, Help("How often expired entries are removed from the store.")] = 3600.0
    voice: Annotated[
        str | None,
        Help("The assistant's voice, as the provider names it.", default="the provider's"),
    ] = None
    language: Annotated[
        str | None, Help("The spoken language, as a BCP 47 tag.", default="the provider's")
    ] = None
    silence_ms: Annotated[
        int, Ge(100), Le(5000), Unit("milliseconds"), Help("How much silence ends a user's turn.")
    ] = 500
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Help("How much the host writes to its log.")
    ] = "info"
    log_format: Annotated[
        Literal["text", "json"], Help("The log format: `text` for people, `json` for programs.")
    ] = "text"
    access_log: Annotated[bool, Help("Log every request.")] = False

    @classmethod
    def load(
        cls,
        table: Mapping[str, Any],
        environ: Mapping[str, str] = os.environ,
        *,
        faults: SettingsFaults | None = None,
        **flags: Any,
    ) -> HostSettings:
        """Read the settings of this process; flags that are None were not given.

        With `faults`, faults are added there and faulty settings get their defaults; without it, a
        `SettingsError` reports the faults.
        """
        found = SettingsFaults()
        variables, origins = read_environment(cls, PREFIX, environ, found)
        given = {name: value for name, value in flags.items() if value is not None}
        origins |= {name: f"--{name.replace('_', '-')}" for name in given}
        # Before the merge, because paths in variables and options are relative to the working directory.
        if isinstance(table, FileTable):
            table = table.resolved(cls)
        merged = merge_tables(merge_tables(table, variables), given)
        read = read_settings(cls, merged, TABLE, found, origins=origins)
        if found:
            # A fault elsewhere must not hide that the host would be open to every client.
            access = {name: merged[name] for name in merged.keys() & _ACCESS}
            exposed = SettingsFaults()
            read_settings(AccessSettings, access, TABLE, exposed, origins=origins)
            found.add(str(exposed))
        if faults is None:
            found.check()
        else:
            faults.add(str(found))
        return read or cls()

    @property
    def spoken(self) -> VoiceSettings:
        """The settings of speech recognition and synthesis."""
        return VoiceSettings(self.voice, self.language, self.silence_ms)


_ACCESS = {each.name for each in fields(AccessSettings)}


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()
