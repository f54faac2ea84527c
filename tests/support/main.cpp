// SPDX-License-Identifier: Apache-2.0
// Catch2 v2 wants one translation unit with its runner; v3 brings a library with main().
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
