#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records the ABI of a libgrowpage.so that has debug information: capi/abi/record.sh LIBRARY.
# Of paths only the file names are kept. docs/abi.md says when.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
abidw --exported-interfaces-only --no-elf-needed --headers-dir "$here/../include" \
  --drop-private-types --no-show-locs --no-corpus-path --no-comp-dir-path "$1" |
  sed "s|path='[^']*/|path='|" >"$here/growpage.abi"
