"""Google access tokens, which google-auth gets with a service account or a user's refresh token."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import httpx
from google.auth import transport
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError, RefreshError, TransportError
from google.oauth2.credentials import Credentials as UserCredentials
from google.oauth2.service_account import Credentials as ServiceAccount
from jackfield.settings import SettingsError

from jackfield_calendar import tool_errors
from jackfield_calendar.settings import PLACE

SCOPES = ("https://www.googleapis.com/auth/calendar",)
TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address


class _Answer(transport.Response):
    """Adapts an httpx response to google-auth."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer

    @property
    def status(self) -> int:
        return self._answer.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    @property
    def data(self) -> bytes:
        return self._answer.content


class _Ask(transport.Request):
    """Adapts httpx requests to google-auth."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the configured limit is shorter
        **_: Any,
    ) -> _Answer:
        try:
            return _Answer(httpx.request(method, url, content=body, headers=headers, timeout=self._seconds))
        except httpx.HTTPError as error:
            raise TransportError(type(error).__name__) from None  # type: ignore[no-untyped-call]


class GoogleTokens:
    """The access token of one calendar, renewed before it expires."""

    def __init__(
        self, calendar: str, options: Mapping[str, Any], environ: Mapping[str, str], seconds: float
    ) -> None:
        self._calendar = calendar
        self._credentials = _credentials(calendar, options, environ)
        self._ask = _Ask(seconds)
        self._renewing = asyncio.Lock()

    async def bearer(self) -> str:
        """Return a valid token."""
        async with self._renewing:
            if not self._credentials.valid:
                try:
                    await asyncio.to_thread(self._credentials.refresh, self._ask)
                except TransportError:
                    how = "Google's token server did not answer"
                    raise tool_errors.unreachable(self._calendar, how, writing=False) from None
                except RefreshError as error:
                    if error.retryable:
                        how = "Google's token server returned an error"
                        raise tool_errors.unreachable(self._calendar, how, writing=False) from None
                    raise tool_errors.refused(self._calendar) from None
                except GoogleAuthError:
                    raise tool_errors.refused(self._calendar) from None
            return str(self._credentials.token)


def _credentials(calendar: str, options: Mapping[str, Any], environ: Mapping[str, str]) -> Credentials:
    if path := options.get("service_account_file"):
        try:
            account: Any = ServiceAccount.from_service_account_file(path, scopes=SCOPES)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, GoogleAuthError) as error:
            # The file contains a private key, so only its name and the error type are shown.
            raise SettingsError(
                f"[{PLACE}.calendars.{calendar}] service_account_file: {path} cannot be read, or is not the "
                f"JSON key of a service account ({type(error).__name__})"
            ) from None
        return cast(
            "Credentials", account.with_subject(options["subject"]) if "subject" in options else account
        )
    return UserCredentials(  # type: ignore[no-untyped-call]
        None,
        refresh_token=environ[options["refresh_token_env"]],
        client_id=environ[options["client_id_env"]],
        client_secret=environ[options["client_secret_env"]],
        token_uri=options.get("token_url", TOKEN_URL),
        scopes=SCOPES,
    )
