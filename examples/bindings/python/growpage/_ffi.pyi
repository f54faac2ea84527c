# SPDX-License-Identifier: Apache-2.0
# _ffi.py is made from growpage.h when the package is built.
from typing import Any

ffi: Any
