#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh DIR: wheel, fresh environment, mypy and tests, all in DIR. With GROWPAGE_LIBRARY set the
# wheel carries that library, else it builds one. 77 = skipped.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export GROWPAGE_SOURCE=${GROWPAGE_SOURCE:-$(cd "$here/../../.." && pwd)}
mkdir -p "$1"
cd "$1"

python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import ensurepip, sys; assert sys.version_info >= (3, 10)' 2>/dev/null; then
  echo "skipped: no Python 3.10 with venv (Debian: python3-venv)"
  exit 77
fi
rm -rf source wheels environment
cp -r "$here" source # nothing is built inside the checkout
"$python" -m venv environment
pip() { environment/bin/pip --disable-pip-version-check --quiet "$@"; }
if ! pip download --no-deps --dest wheels/cffi cffi; then
  echo "skipped: no access to PyPI"
  exit 77
fi

pip wheel --no-deps --wheel-dir wheels ./source
pip install "$(echo wheels/growpage-*.whl)[test]"
mv source/growpage source/not-the-installed-one
cd source
"../environment/bin/python" -m mypy -p growpage
"../environment/bin/python" -m mypy scenario.py tests
"../environment/bin/python" -m pytest -q -p no:cacheprovider
