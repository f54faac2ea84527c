// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The one place the version is written; CMake reads it from here.
#define GROWPAGE_VERSION_MAJOR 0
#define GROWPAGE_VERSION_MINOR 1
#define GROWPAGE_VERSION_PATCH 0
