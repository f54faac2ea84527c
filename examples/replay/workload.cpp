// SPDX-License-Identifier: Apache-2.0
#include "workload.hpp"

#include <algorithm>
#include <cmath>

#include "random.hpp"

namespace growpage::replay {
namespace {

constexpr std::uint64_t vocabulary = 151'936;  // Qwen3
constexpr std::uint64_t block_domain = 1, prompt_domain = 2, output_domain = 3;

TokenId token(std::uint64_t content, std::int64_t position) noexcept {
  return static_cast<TokenId>(mix(content, static_cast<std::uint64_t>(position)) % vocabulary);
}

}  // namespace

void make_prompt(const TraceRequest& request, std::vector<TokenId>& out) {
  out.clear();
  out.reserve(static_cast<std::size_t>(request.prompt_tokens));
  for (std::int64_t i = 0; i < request.prompt_tokens; ++i) {
    const auto block = static_cast<std::size_t>(i / TraceRequest::block_tokens);
    const std::uint64_t content = request.blocks.empty() ? mix(prompt_domain, request.prompt_id)
                                                         : mix(block_domain, request.blocks[block]);
    out.push_back(token(content, request.blocks.empty() ? i : i % TraceRequest::block_tokens));
  }
}

TokenId generated_token(std::uint64_t tag, std::int64_t position) noexcept {
  return token(mix(output_domain, tag), position);
}

void reshape(std::vector<TraceRequest>& requests, std::int64_t limit, double scale) {
  if (limit > 0 && limit < static_cast<std::int64_t>(requests.size())) {
    requests.resize(static_cast<std::size_t>(limit));
  }
  const auto scaled = [scale](std::int64_t tokens) {
    return std::max<std::int64_t>(1, std::llround(scale * static_cast<double>(tokens)));
  };
  for (TraceRequest& request : requests) {
    request.prompt_tokens = scaled(request.prompt_tokens);
    request.output_tokens = scaled(request.output_tokens);
  }
}

WorkloadTotals totals(std::span<const TraceRequest> requests) {
  WorkloadTotals sum;
  for (const TraceRequest& request : requests) {
    sum.prompt_tokens += request.prompt_tokens;
    sum.output_tokens += request.output_tokens;
    sum.longest = std::max(sum.longest, request.prompt_tokens + request.output_tokens);
  }
  return sum;
}

}  // namespace growpage::replay
