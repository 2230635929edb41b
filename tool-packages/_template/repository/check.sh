#!/usr/bin/env bash
# Builds the wheel, checks and tests it in a new environment, and compares its tools with those of the last release.
# Needs uv and git. JACKFIELD is the folder of a checkout of Jackfield; without it, Jackfield comes from the package index.
set -euo pipefail
cd "$(dirname "$0")"
jackfield="${JACKFIELD:+$(realpath "$JACKFIELD")/plugins/}jackfield[testkit]"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '\n== %s\n' "$*"; }

# freeze SOURCE WHEELS REGISTRY: builds the wheel of a source folder, installs it and freezes its tools.
freeze() {
    uv build --quiet --wheel --out-dir "$2" "$1"
    local wheels=("$2"/*.whl)
    uv pip install --quiet --reinstall-package __distribution__ "${wheels[0]}[test]"
    (cd "$work" && jackfield build --registry "$3")
}

step "Install Jackfield in a new environment"
uv venv --quiet "$work/venv"
export VIRTUAL_ENV="$work/venv" PATH="$work/venv/bin:$PATH"
uv pip install --quiet "$jackfield"

step "Build and freeze this version"
rm -rf dist
freeze . dist "$work/new.json"

step "Contract tests"
pytest -q -p no:cacheprovider tests

step "Compare with the last release"
# The newest tag v* in the history of this commit, but not on it.
last=$(git tag --list 'v*' --merged HEAD --no-contains HEAD --sort=-version:refname | head -n 1)
if [ -z "$last" ]; then
    echo "There is no earlier tag v*, so there is nothing to compare with."
    exit
fi
mkdir "$work/last"
git archive "$last" | tar -x -C "$work/last"
freeze "$work/last" "$work/dist" "$work/last.json"
jackfield diff --strict "$work/last.json" "$work/new.json"
