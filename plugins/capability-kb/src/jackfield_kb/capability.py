"""The capability `kb`: a library for a host's sessions."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from jackfield import ErrorType, ToolError
from jackfield.contract.context import SessionView
from jackfield_capability_types.knowledge import Evidence, Filters, Record

from jackfield_kb.access import Access
from jackfield_kb.errors import DatabaseUnavailableError, IndexUnavailableError, LibraryError
from jackfield_kb.settings import KnowledgeSettings, open_library

if TYPE_CHECKING:
    from jackfield_kb.library import Library

T = TypeVar("T")
_THREADS = 4
_MOST_RESULTS = 50
_MOST_IDS = 100
_log = logging.getLogger("jackfield.kb")


class LibraryKnowledge:
    """A library, and the threads on which sessions use it."""

    def __init__(self, library: Library, settings: KnowledgeSettings) -> None:
        self.library = library
        self._settings = settings
        self._threads = ThreadPoolExecutor(_THREADS, "jackfield-kb")
        self._warming = threading.Lock()
        self._warm = False

    @classmethod
    def from_settings(cls, settings: KnowledgeSettings) -> LibraryKnowledge:
        """Open the library that the settings describe."""
        return cls(open_library(settings), settings)

    def started(self, runtime: object) -> None:  # noqa: ARG002 - the signature of a capability
        """Start following the changes that other hosts make."""
        self.library.follow()

    def for_session(self, session: SessionView) -> SessionKnowledge:
        """Return the library with the access of the session's user."""
        with self._warming:
            # Warm up with the first session, so that the first query is fast.
            if not self._warm:
                self._threads.submit(self.library.warm)
            self._warm = True
        return SessionKnowledge(self, self._settings.access_of(session.user))

    async def run(self, work: Callable[[Library], T]) -> T:
        """Run work on a library thread; failures become tool errors for the model."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._settings.patience):
                return await loop.run_in_executor(self._threads, work, self.library)
        except TimeoutError:
            raise _unavailable("The knowledge base did not answer in time.") from None
        except IndexUnavailableError as error:
            raise _unavailable(f"{str(error).capitalize()}.") from error
        except DatabaseUnavailableError as error:
            _log.warning("%s", error)
            raise _unavailable(
                "The database of the knowledge base cannot be reached at the moment."
            ) from error
        except LibraryError as error:
            # The message may contain paths, so it goes to the log only.
            _log.error("%s", error)
            raise _unavailable("The knowledge base cannot be read at the moment.") from error

    async def close(self) -> None:
        """Close files and stop the threads."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        self.library.close()


class SessionKnowledge:
    """The knowledge base of one session."""

    def __init__(self, knowledge: LibraryKnowledge, access: Access) -> None:
        self._knowledge = knowledge
        self._access = access

    async def search(
        self,
        query: str,
        *,
        namespace: str = "studio",
        filters: Filters | None = None,
        limit: int = 5,
        snippets: bool = True,
    ) -> Sequence[Evidence]:
        """Return the best matching records, best first, each once."""
        return await self._knowledge.run(
            lambda library: library.search(
                query,
                access=self._access,
                namespace=namespace,
                filters=filters,
                limit=min(limit, _MOST_RESULTS),
                snippets=snippets,
            )
        )

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        """Return the records that the user may see, by id, in the given order."""
        asked = list(ids)[:_MOST_IDS]
        return await self._knowledge.run(lambda library: library.visible(asked, self._access))


def _unavailable(message: str) -> ToolError:
    return ToolError(
        ErrorType.TRANSIENT,
        message,
        retryable=True,
        suggestion="Try again in a moment, or answer without it.",
    )
