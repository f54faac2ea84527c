// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <cmath>
#include <limits>

namespace growpage::eval {

Json number(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }

Json to_json(const Interval& interval) {
  return {{"value", number(interval.value)},
          {"low", number(interval.low)},
          {"high", number(interval.high)}};
}

double to_number(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

Interval to_interval(const Json& json) {
  return {to_number(json.at("value")), to_number(json.at("low")), to_number(json.at("high"))};
}

}  // namespace growpage::eval
