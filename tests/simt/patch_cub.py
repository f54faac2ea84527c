#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes copies of some of CUB's headers that an ordinary C++ compiler takes.

usage: patch_cub.py <CCCL include directory> <output directory>

Inline PTX becomes a call into simt/cub.hpp. The copies go in front of the toolkit's headers on the
include path. A pattern that is not found ends the run: the toolkit's CUB has changed, and a copy
that keeps its PTX would only fail later.
"""

import pathlib
import re
import sys


def ptx(instruction, replacement):
    """An asm statement that begins with the instruction, to the end of its operands."""
    pattern = r'asm( volatile)?\("' + instruction.replace(".", r"\.") + r'[^;]*?;"\s*:.*?\);'
    return pattern, replacement, 1


# Header -> (pattern, replacement, how often at least).
PATCHES = {
    "cub/config.cuh": [(r"#pragma once\n", '#pragma once\n\n#include "simt/cub.hpp"\n', 1)],
    "cub/util_ptx.cuh": [
        ptx("shfl.sync.up.b32",
            "word = ::simt::ptx_shuffle_up(word, src_offset, flags, member_mask);"),
        ptx("shfl.sync.down.b32",
            "word = ::simt::ptx_shuffle_down(word, src_offset, flags, member_mask);"),
        ptx("bfe.u32",
            "bits = ::simt::ptx_bit_field(static_cast<unsigned>(source), bit_start, num_bits);"),
        ptx("shl.b32", "ret = ::simt::ptx_shift_left(val, num_bits);"),
        ptx("shr.b32", "ret = ::simt::ptx_shift_right(val, num_bits);"),
    ],
    # Overloads for sums that are PTX from end to end: chosen for no type, the general one is used.
    "cub/warp/specializations/warp_reduce_shfl.cuh": [
        (r"::cuda::std::plus<> /\*reduction_op\*/", "::simt::NoSpecialisation", 5)],
    "cub/warp/specializations/warp_scan_shfl.cuh": [
        (r"::cuda::std::plus<> /\*scan_op\*/", "::simt::NoSpecialisation", 6)],
}

# `using BlockX = BlockX<...>;` in a class: nvcc takes it, g++ says that it changes the meaning.
SELF_ALIAS = re.compile(r"\busing ((?:Block|Warp)\w+)(\s*=\s*)\1<")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, output = map(pathlib.Path, sys.argv[1:])
    headers = set(PATCHES)
    for folder in ("cub/block", "cub/warp"):
        headers.update(str(path.relative_to(source)) for path in (source / folder).rglob("*.cuh"))

    for header in sorted(headers):
        original = (source / header).read_text()
        text = original
        for pattern, replacement, least in PATCHES.get(header, []):
            text, count = re.subn(pattern, lambda _: replacement, text, flags=re.S)
            if count < least:
                sys.exit(f"{header}: {pattern!r} found {count} times, not {least}")
        text = SELF_ALIAS.sub(r"using \1\2::cub::\1<", text)
        if text != original:
            copy = output / header
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)


if __name__ == "__main__":
    main()
