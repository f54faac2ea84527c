// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2 v2 (Debian 12) and v3 (Ubuntu 24.04) under one include. Both define CHECK, REQUIRE,
// SECTION, GENERATE, TEST_CASE and TEMPLATE_TEST_CASE. v2 puts Approx into the global namespace by
// itself; v3 leaves it in namespace Catch.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // NOLINT(google-build-using-namespace)
#else
#include <catch2/catch.hpp>
#endif
