// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "growpage/core/status.hpp"

namespace growpage {

GROWPAGE_INLINE const char* status_name(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::ok:
      return "ok";
    case StatusCode::out_of_pages:
      return "out_of_pages";
    case StatusCode::out_of_sequences:
      return "out_of_sequences";
    case StatusCode::out_of_slots:
      return "out_of_slots";
    case StatusCode::at_capacity:
      return "at_capacity";
    case StatusCode::out_of_fences:
      return "out_of_fences";
    case StatusCode::out_of_host_pages:
      return "out_of_host_pages";
    case StatusCode::busy:
      return "busy";
    case StatusCode::invalid_argument:
      return "invalid_argument";
    case StatusCode::stale_id:
      return "stale_id";
    case StatusCode::behind_compaction:
      return "behind_compaction";
    case StatusCode::request_too_large:
      return "request_too_large";
    case StatusCode::unsupported:
      return "unsupported";
    case StatusCode::protocol_error:
      return "protocol_error";
    case StatusCode::out_of_memory:
      return "out_of_memory";
    case StatusCode::internal_error:
      return "internal_error";
    case StatusCode::device_error:
      return "device_error";
  }
  return "unknown";
}

GROWPAGE_INLINE Status Status::error(StatusCode code, std::string_view argument,
                                     std::string_view value, std::string_view allowed) {
  Status status(code);
  status.detail_ = std::make_shared<const ErrorDetail>(
      ErrorDetail{std::string(argument), std::string(value), std::string(allowed)});
  return status;
}

GROWPAGE_INLINE Status Status::invalid(std::string_view argument, std::int64_t value,
                                       std::string_view allowed) {
  return error(StatusCode::invalid_argument, argument, fmt::format("{}", value), allowed);
}

GROWPAGE_INLINE Status Status::invalid(std::string_view argument, double value,
                                       std::string_view allowed) {
  return error(StatusCode::invalid_argument, argument, fmt::format("{}", value), allowed);
}

GROWPAGE_INLINE Status Status::invalid(std::string_view argument, std::string_view value,
                                       std::string_view allowed) {
  return error(StatusCode::invalid_argument, argument, value, allowed);
}

GROWPAGE_INLINE std::string Status::message() const {
  if (detail_ == nullptr) return status_name(code_);
  return fmt::format("{}: {} is {}; allowed: {}", status_name(code_), detail_->argument,
                     detail_->value, detail_->allowed);
}

}  // namespace growpage
