#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches vLLM's wheel from PyPI, without its dependencies, and keeps its Python files (about 40 MB)
# outside the repository, where vllm_peer.py finds them: $GROWPAGE_PEERS, or growpage-peers in the cache
# folder of the user. usage: fetch_vllm.sh [VERSION]
set -euo pipefail
version=${1:-0.33.0}
peers=${GROWPAGE_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/growpage-peers}
target=$peers/vllm-$version
if [[ -d $target ]]; then
  echo "$target is there already"
  exit 0
fi
mkdir -p "$peers"
download=$(mktemp -d -p "$peers")
trap 'rm -rf "$download"' EXIT
python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$download" "vllm==$version"
python3 - "$download" <<'PY'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
    names = [n for n in wheel.namelist() if n.endswith(".py") or n.endswith("/METADATA")]
    wheel.extractall(folder / "files", names)
PY
mv "$download/files" "$target"
echo "vLLM $version is in $target"
