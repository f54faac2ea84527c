// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "claims.hpp"
#include "json.hpp"

namespace growpage::eval {

/// The results as markdown: a section for each part that ran.
[[nodiscard]] std::string to_markdown(const Json& results);
/// The claims, one line each: held or failed, and whether the interval says so too.
[[nodiscard]] std::string to_markdown(std::span<const Claim> claims);

}  // namespace growpage::eval
