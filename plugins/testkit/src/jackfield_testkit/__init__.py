"""Contract tests for Jackfield tools, capabilities, stores and transports: subclass a suite to run them."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jackfield_testkit.agents import AgentsContractTests
    from jackfield_testkit.calendar import CalendarContractTests
    from jackfield_testkit.context import AuditLine, ProgressReport, SessionStub, ToolTestContext
    from jackfield_testkit.images import ImagesContractTests, ImageServer, MemoryImages
    from jackfield_testkit.knowledge import KnowledgeContractTests, MemoryKnowledgeBase
    from jackfield_testkit.runtime import TestRuntime, capability, make_tool
    from jackfield_testkit.tool import Example, FamilyContractTests, ToolContractTests
    from jackfield_testkit.transport import TransportContractTests
    from jackfield_testkit.web import WebContractTests, WebSite
    from jackfield_testkit.workspace import StubWorkspace, WorkspaceContractTests, WorkspaceToolTests

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


_MODULES = {
    "agents": ("AgentsContractTests",),
    "calendar": ("CalendarContractTests",),
    "context": ("AuditLine", "ProgressReport", "SessionStub", "ToolTestContext"),
    "images": ("ImagesContractTests", "ImageServer", "MemoryImages"),
    "knowledge": ("KnowledgeContractTests", "MemoryKnowledgeBase"),
    "runtime": ("TestRuntime", "capability", "make_tool"),
    "tool": ("Example", "FamilyContractTests", "ToolContractTests"),
    "transport": ("TransportContractTests",),
    "web": ("WebContractTests", "WebSite"),
    "workspace": ("StubWorkspace", "WorkspaceContractTests", "WorkspaceToolTests"),
}


def __getattr__(name: str) -> Any:
    # Loaded on demand: a test module uses few of them, and only those of transports need
    # jackfield-scripted-providers.
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
