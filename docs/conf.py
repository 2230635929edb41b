"""How the pages of this repository become a site: `nox -s docs`. Their order stands in index.md.

Sphinx with Furo and MyST: maintained, and the site they make asks no other machine for anything, its search
included, also when it is opened from a folder. The source is the whole repository, so that a link means the
same on the site and beside the files.
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
    "plugins/transport-*/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
# Not looked into.
exclude_patterns = [".*", "site", "tests", "tool-packages", "deploy", "prompts", "**/src", "**/tests"]

extensions = ["myst_parser"]
# Links to headings are written as a Markdown host makes them, so that they hold there as well.
myst_heading_anchors = 4
# A block tagged `json` may leave something out (`...`), and is shown plain then.
suppress_warnings = ["misc.highlighting_failure"]
# A block without a language is a command or what it prints, not Python.
highlight_language = "none"

html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
# Whoever opens the folder itself is led to the first page.
html_extra_path = ["front"]
html_copy_source = False
html_show_sourcelink = False
