"""Contract tests with example calls; docs/testkit.md of Jackfield explains each test."""

from jackfield_testkit import Example, FamilyContractTests


class Test__FamilyName__(FamilyContractTests):
    family = "__family__"
    examples = {
__examples__
    }
