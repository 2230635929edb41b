"""Contract tests for Jackfield tools, capabilities, stores and transports: subclass a suite to run them."""

from typing import TYPE_CHECKING, Any

from jackfield_testkit.agents import AgentsContractTests
from jackfield_testkit.calendar import CalendarContractTests
from jackfield_testkit.context import AuditLine, ProgressReport, SessionStub, ToolTestContext
from jackfield_testkit.images import ImagesContractTests, ImageServer, MemoryImages
from jackfield_testkit.knowledge import KnowledgeContractTests, MemoryKnowledgeBase
from jackfield_testkit.runtime import TestRuntime, capability, make_tool
from jackfield_testkit.tool import Example, FamilyContractTests, ToolContractTests
from jackfield_testkit.web import WebContractTests, WebSite
from jackfield_testkit.workspace import StubWorkspace, WorkspaceContractTests, WorkspaceToolTests

if TYPE_CHECKING:
    from jackfield_testkit.transport import TransportContractTests

__all__ = [
    "AgentsContractTests",
    "AuditLine",
    "CalendarContractTests",
    "Example",
    "FamilyContractTests",
    "ImageServer",
    "ImagesContractTests",
    "KnowledgeContractTests",
    "MemoryImages",
    "MemoryKnowledgeBase",
    "ProgressReport",
    "SessionStub",
    "StubWorkspace",
    "TestRuntime",
    "ToolContractTests",
    "ToolTestContext",
    "TransportContractTests",
    "WebContractTests",
    "WebSite",
    "WorkspaceContractTests",
    "WorkspaceToolTests",
    "capability",
    "make_tool",
]


def __getattr__(name: str) -> Any:
    # Only authors of transports need jackfield-scripted-providers.
    if name == "TransportContractTests":
        from jackfield_testkit.transport import TransportContractTests

        return TransportContractTests
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
