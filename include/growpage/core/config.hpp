// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Bodies of non-template functions live in `detail/*.ipp`. They are compiled once into the library
/// (`src/*.cpp`), or, with GROWPAGE_HEADER_ONLY, inline into every translation unit. The
/// header-only form has every feature except run-time SIMD dispatch: its CPU kernels are the scalar
/// ones.
#ifdef GROWPAGE_HEADER_ONLY
#define GROWPAGE_INLINE inline
#else
#define GROWPAGE_INLINE
#endif
