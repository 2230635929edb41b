"""The standard tests of a way to the web, and a site for the tests of what reads pages."""

from jackfield_testkit.web_contract.site import WebSite
from jackfield_testkit.web_contract.suite import WebContractTests

__all__ = ["WebContractTests", "WebSite"]
