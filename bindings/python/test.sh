#!/bin/sh
# Builds the wheel and runs the tests in a fresh virtual environment: test.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/build"
"$scratch/build/bin/pip" --quiet install 'maturin>=1.7,<2'
(cd "$here" && PATH="$scratch/build/bin:$PATH" CARGO_BUILD_JOBS=1 maturin build --quiet --release --out "$scratch/wheels")
python3 -m venv "$scratch/run"
"$scratch/run/bin/pip" --quiet install --no-index "$scratch"/wheels/*.whl
cd "$scratch"
"$scratch/run/bin/python" -m unittest discover --start-directory "$here/tests" --verbose
