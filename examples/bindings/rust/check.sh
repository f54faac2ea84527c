#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh DIR: tests and the scenario, built in DIR, with the library in GROWPAGE_LIB_DIR.
# 77 = skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export GROWPAGE_SOURCE=${GROWPAGE_SOURCE:-$(cd "$here/../../.." && pwd)}
mkdir -p "$1"
cd "$1"

cargo=${CARGO:-cargo}
if ! "$cargo" --version 2>/dev/null || ! "${RUSTC:-rustc}" --version 2>/dev/null; then
  echo "skipped: no cargo and rustc (Debian: cargo, rustc)"
  exit 77
fi
rm -rf source
cp -r "$here" source # nothing is built inside the checkout
cd source
export CARGO_TARGET_DIR=$PWD/../target RUSTFLAGS="-D warnings"
# Examples in the documentation start without the rpath of the others.
LD_LIBRARY_PATH=${GROWPAGE_LIB_DIR:-}:${LD_LIBRARY_PATH:-} "$cargo" test --offline --quiet
"$cargo" run --offline --quiet --example scenario |
  diff - "$GROWPAGE_SOURCE/examples/bindings/scenario.expected"
