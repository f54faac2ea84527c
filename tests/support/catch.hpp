// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2 v2 (Debian 12) and v3 (Ubuntu 24.04) under one include. Both define CHECK, REQUIRE,
// SECTION, GENERATE, TEST_CASE, TEMPLATE_TEST_CASE and Approx (v3 in namespace Catch).
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

using Catch::Approx;  // NOLINT(google-build-using-namespace)
