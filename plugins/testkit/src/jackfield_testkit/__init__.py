"""Conformance tests for what plugs into Jackfield: subclass, give examples, get the standard tests."""

from typing import TYPE_CHECKING, Any

from jackfield_testkit.agents_contract import AgentsContractTests
from jackfield_testkit.calendar_contract import CalendarContractTests
from jackfield_testkit.context import AuditLine, Progress, ToolTestContext
from jackfield_testkit.images_contract import ImagesContractTests, ImageServer, MemoryImages
from jackfield_testkit.knowledge_contract import KnowledgeContractTests, MemoryKnowledgeBase
from jackfield_testkit.offered import capability
from jackfield_testkit.tool_contract import Example, ToolContractTests
from jackfield_testkit.web_contract import WebContractTests, WebSite
from jackfield_testkit.workspace_contract import ToldWorkspace, WorkspaceContractTests, WorkspaceToolTests

if TYPE_CHECKING:
    from jackfield_testkit.transport_contract import TransportContractTests

__all__ = [
    "AgentsContractTests",
    "AuditLine",
    "CalendarContractTests",
    "Example",
    "ImageServer",
    "ImagesContractTests",
    "KnowledgeContractTests",
    "MemoryImages",
    "MemoryKnowledgeBase",
    "Progress",
    "ToldWorkspace",
    "ToolContractTests",
    "ToolTestContext",
    "TransportContractTests",
    "WebContractTests",
    "WebSite",
    "WorkspaceContractTests",
    "WorkspaceToolTests",
    "capability",
]


def __getattr__(name: str) -> Any:
    # The author of a tool needs nothing of what a transport is tested with.
    if name == "TransportContractTests":
        from jackfield_testkit.transport_contract import TransportContractTests

        return TransportContractTests
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
