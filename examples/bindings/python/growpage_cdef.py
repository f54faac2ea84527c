# SPDX-License-Identifier: Apache-2.0
"""growpage.h as declarations for cffi: the header is the only place where they are written."""

from __future__ import annotations

import re

#: What cffi's parser knows of the preprocessor: integer constants.
_CONSTANT = re.compile(r"#define\s+\w+\s+\d+\s*$")


def declarations(header: str) -> str:
    """The header without what only a C or C++ compiler needs."""
    header = re.sub(r"#ifdef __cplusplus.*?#endif[^\n]*", "", header, flags=re.DOTALL)
    lines = [
        line
        for line in header.splitlines()
        if not line.startswith("#") or _CONSTANT.match(line)
    ]
    return re.sub(r"\bGROWPAGE_API\b", "", "\n".join(lines))
