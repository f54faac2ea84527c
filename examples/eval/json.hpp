// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "statistics.hpp"

namespace growpage::eval {

/// Results are one JSON document: written once, then read by the tables, the claims and the plots.
using Json = nlohmann::ordered_json;

/// NaN becomes null.
[[nodiscard]] Json number(double value);
/// {"value", "low", "high"}.
[[nodiscard]] Json to_json(const Interval& interval);
/// The way back: null becomes NaN.
[[nodiscard]] double to_number(const Json& json);
[[nodiscard]] Interval to_interval(const Json& json);

}  // namespace growpage::eval
