"""The contract tests of the `web` capability, and a web site for tests."""

from jackfield_testkit.web.site import WebSite
from jackfield_testkit.web.suite import WebContractTests

__all__ = ["WebContractTests", "WebSite"]
