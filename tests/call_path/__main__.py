"""Trace the paths on a real host and write `docs/call.md`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from call_path.ceilings import CEILINGS
from call_path.page import PAGE, render
from call_path.scenarios import all_paths
from call_path.tracer import ROOT


def main() -> int:
    """Write the page and print how the paths compare with their ceilings."""
    with TemporaryDirectory() as folder:
        paths = all_paths(Path(folder))
    PAGE.write_text(render(paths), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    for name, path in paths.items():
        print(f"{name}: {path.counts}, ceiling {CEILINGS[name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
