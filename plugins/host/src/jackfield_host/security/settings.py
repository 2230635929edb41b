"""What a deployment says about access: who listens where, keys, JWT, origins and names."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from jackfield.contract.context import Mode
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from jackfield_host.security.identity import MAX_NAME, usable_name
from jackfield_host.security.origins import authority, origin

Algorithm = Literal["RS256", "ES256", "EdDSA", "Ed25519", "HS256"]

KEY_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
"""What a key may be called: no underscore, which parts the key, and a bare key of TOML."""


def _name(value: str) -> str:
    if not usable_name(value):
        raise ValueError(f"a name has 1 to {MAX_NAME} printable characters and no spaces around it")
    return value


def _key_name(value: str) -> str:
    if not KEY_NAME.fullmatch(value):
        raise ValueError("a key is called by small letters, digits and hyphens, at most 32 of them")
    return value


def _origin(value: str) -> str:
    read = origin(value)
    if read is None:
        raise ValueError(
            f"{value!r} is not an origin; one looks like https://console.example or http://localhost:5173"
        )
    return str(read)


def _host(value: str) -> str:
    read = authority(value)
    if read is None or read.port is not None:
        raise ValueError(f"{value!r} is not the name of a host; one looks like agent.example, without a port")
    return read.name


Name = Annotated[str, AfterValidator(_name)]


class KeySettings(BaseModel):
    """One API key: a table `[host.keys.NAME]`, as `jackfield key NAME` prints it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    digest: str = Field(
        pattern=r"^sha256:[0-9a-f]{64}$",
        description="The SHA-256 of the key; the key itself is kept nowhere.",
    )
    user: Name = Field(description="Whom the key stands for.")
    roles: tuple[Name, ...] = Field(
        default=(), max_length=64, description="The roles that the key gives to its user."
    )
    mode: Mode | None = Field(
        default=None, description="`text` or `voice` where the key is good for that mode alone."
    )


class JwtSettings(BaseModel):
    """Whose JSON Web Tokens are accepted: the table `[host.jwt]`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    algorithms: tuple[Algorithm, ...] = Field(
        min_length=1, description="The signature algorithms that are accepted; `HS256` only by itself."
    )
    key_file: str | None = Field(
        default=None, description="A file with the issuer's public key (PEM) or public keys (JWKS)."
    )
    secret_env: str | None = Field(
        default=None,
        description="The environment variable that holds the secret shared for `HS256`, at least 32 bytes.",
    )
    audience: str = Field(min_length=1, description="What `aud` of a token has to name: this host.")
    issuer: str | None = Field(
        default=None,
        min_length=1,
        description="What `iss` of a token has to be; left out, it is not looked at.",
    )
    user_claim: str = Field(default="sub", min_length=1, description="The claim that names the user.")
    roles_claim: str = Field(
        default="roles", description="The claim with the user's roles, a list or words; empty reads none."
    )
    session_claim: str = Field(
        default="session", description="The claim that ties a token to one session; empty reads none."
    )
    mode_claim: str = Field(
        default="mode", description="The claim that ties a token to `text` or `voice`; empty reads none."
    )
    leeway: int = Field(
        default=30, ge=0, le=300, description="How many seconds the clocks of issuer and host may differ."
    )

    @model_validator(mode="after")
    def _key_fits_algorithms(self) -> JwtSettings:
        # One key serves one kind of algorithm: a public key taken as a shared secret lets anyone sign.
        if "HS256" not in self.algorithms:
            if self.key_file is None or self.secret_env is not None:
                raise ValueError(f"{', '.join(self.algorithms)} needs `key_file`, and no `secret_env`")
        elif len(set(self.algorithms)) > 1:
            raise ValueError("`HS256` cannot be accepted beside algorithms that use a public key")
        elif self.secret_env is None or self.key_file is not None:
            raise ValueError("`HS256` needs `secret_env`, and no `key_file`")
        return self


class AccessSettings(BaseModel):
    """Who may reach the host, and as whom."""

    model_config = ConfigDict(extra="forbid")

    address: str = Field(
        default="127.0.0.1",
        description="The address to listen on; beyond this machine's own (`127.0.0.1`) a token is required.",
    )
    keys: dict[Annotated[str, AfterValidator(_key_name)], KeySettings] = Field(
        default_factory=dict, description="The API keys that are accepted, by name."
    )
    jwt: JwtSettings | None = Field(default=None, description="Whose JSON Web Tokens are accepted.")
    origins: tuple[Annotated[str, AfterValidator(_origin)], ...] = Field(
        default=(),
        description="Origins of other sites whose pages may use the host, such as `https://console.example`.",
    )
    hosts: tuple[Annotated[str, AfterValidator(_host)], ...] = Field(
        default=(),
        description="Names the host answers to besides this machine's own; empty, beyond loopback: any.",
    )
