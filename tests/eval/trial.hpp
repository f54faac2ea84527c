// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "experiment.hpp"
#include "serving.hpp"

namespace growpage::test {

using namespace growpage::eval;  // NOLINT(google-build-using-namespace)

struct Tiny {
  Folder folder{"eval"};
  runtime::Model model;
  Tiny() : model(write_and_load(folder)) {}

 private:
  static runtime::Model write_and_load(const Folder& to) {
    TinyCheckpoint tiny = tiny_checkpoint("qwen3");
    write_checkpoint(to, tiny, DType::f32);
    return load(to);
  }
};

inline std::vector<Problem> texts_of(std::initializer_list<std::size_t> lengths, bool answers) {
  std::vector<Problem> problems;
  for (const std::size_t length : lengths) {
    Problem p;
    p.tag = problems.size();
    p.prompt = random_prompt(5, static_cast<std::uint32_t>(length));
    p.solution = random_prompt(length, static_cast<std::uint32_t>(length + 1));
    if (answers) p.answer = {1};
    p.answer_marker = 2;
    p.max_new_tokens = static_cast<std::int64_t>(length) + 3;
    problems.push_back(std::move(p));
  }
  return problems;
}

inline EvalOptions small_options() {
  EvalOptions options;
  options.bootstrap.resamples = 50;
  options.initial_pages = 2;
  options.budgets = {3, 5};
  options.sufficient = {3, 12};
  options.threads = 2;
  options.copies = 2;
  return options;
}

/// A random model on problems of its own.
struct Trial {
  explicit Trial(std::vector<Problem> texts, const EvalOptions& with = small_options())
      : problems(std::move(texts)), options(with) {}
  Tiny tiny;
  std::vector<Problem> problems;
  EvalOptions options;
  Experiment experiment{tiny.model, options, problems};
};

inline Json measured(const Result<Json>& result) {
  INFO(result.status().message());
  REQUIRE(result.ok());
  return *result;
}

}  // namespace growpage::test
