"""For every test: a host that is not told its provider must not find one on the developer's machine."""

from __future__ import annotations

import os

os.environ["JACKFIELD_LOCAL_SERVERS"] = "none"
os.environ["JACKFIELD_LOCAL_MODEL"] = "none"
for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "JACKFIELD_PROVIDER"):
    os.environ.pop(variable, None)
