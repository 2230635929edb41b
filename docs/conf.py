"""Builds this repository's pages as a site: `nox -s docs`. index.md determines their order.

Sphinx with Furo and MyST is maintained, and its sites load nothing from other servers, not even for search,
and work when opened from a folder. The source is the whole repository, so links work both on the site and in
the files.
"""

project = "Jackfield"
author = "the Jackfield authors"
html_title = "Jackfield"

root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/decisions/*.md",
    "kernel/docs/*.md",
    "plugins/jackfield/README.md",
    "plugins/language/README.md",
    "plugins/transport-*/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
# Folders that Sphinx does not search.
exclude_patterns = [".*", "site", "tests", "tool-packages", "deploy", "prompts", "**/src", "**/tests"]

extensions = ["myst_parser"]
# Anchors have the form that Markdown hosts generate, so that links work there too.
myst_heading_anchors = 4
# A block tagged `json` may contain `...`; it is then shown without highlighting.
suppress_warnings = ["misc.highlighting_failure"]
# A block without a language is a command or its output, not Python.
highlight_language = "none"

html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
# Opening the folder redirects to the first page.
html_extra_path = ["front"]
html_copy_source = False
html_show_sourcelink = False
