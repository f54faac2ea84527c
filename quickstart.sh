#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All set-up on Debian 12 or Ubuntu 24.04, in one command.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat >&2 <<'TEXT'
usage: ./quickstart.sh demo   install what is missing, build, run the replay demo
       ./quickstart.sh test   install what is missing, build, run the whole test suite
       ./quickstart.sh bench  install what is missing, build, run the benchmarks (5 minutes), report
       ./quickstart.sh eval   install what is missing, build, measure every policy on a small reasoning
                              model (10 minutes), check what is claimed of it
       ./quickstart.sh dev    only install what is missing, with the tools that .ci/run uses
TEXT
  exit 2
}

# Installs the packages of the named groups of packages.txt that are not there yet.
install_missing() {
  local name missing=() root=()
  while read -r name; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
      missing+=("$name")
  done < <(awk -v groups=" $* " 'index(groups, " " $1 " ") { print $2 }' packages.txt)
  ((${#missing[@]})) || return 0
  [[ $EUID == 0 ]] || root=(sudo)
  echo "Installing: ${missing[*]}"
  "${root[@]}" apt-get update -q
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

[[ $# == 1 ]] || usage
case $1 in
  demo | test)
    install_missing build
    cmake --workflow --preset "$1"
    ;;
  bench)
    install_missing build bench
    cmake --preset release
    cmake --build --preset release --target growpage_bench
    python3 bench/report.py run --build build/release --out build/bench
    ;;
  eval)
    install_missing build
    cmake --preset release
    cmake --build --preset release --target growpage-eval
    mkdir -p build/eval
    build/release/examples/eval/growpage-eval --model examples/runtime/train/reasoner --threads 2 \
      --output build/eval/results.json --check
    ;;
  dev) install_missing build bench dev ;;
  *) usage ;;
esac
