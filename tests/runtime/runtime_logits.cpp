// SPDX-License-Identifier: Apache-2.0
// Logits against the formulas in double.
#include "naive_model.hpp"
#include "serving.hpp"

using namespace growpage;           // NOLINT(google-build-using-namespace)
using namespace growpage::runtime;  // NOLINT(google-build-using-namespace)
using namespace growpage::test;     // NOLINT(google-build-using-namespace)

namespace {

/// The largest difference of any logit of any output token.
double largest_difference(const TinyCheckpoint& tiny, const Folder& folder,
                          const EngineOptions& options) {
  const Model model = load(folder);
  const auto requests = requests_of_many_lengths(3, 45, /*shared_prefix=*/20);
  const auto engine = open(model, options);
  const Served served = serve(*engine, requests);
  const NaiveModel naive(tiny);
  double largest = 0;
  for (const GenerationRequest& request : requests) {
    std::vector<TokenId> text = request.prompt;
    const std::vector<TokenId>& output = served.tokens.at(request.tag);
    text.insert(text.end(), output.begin(), output.end());
    const auto expected = naive.logits(text);
    for (std::size_t i = 0; i < output.size(); ++i) {
      const auto& row = served.logits.at({request.tag, static_cast<std::int64_t>(i)});
      const auto& right = expected[request.prompt.size() - 1 + i];
      REQUIRE(row.size() == right.size());
      for (std::size_t t = 0; t < row.size(); ++t) {
        largest = std::max(largest, std::abs(double{row[t]} - right[t]));
      }
    }
  }
  return largest;
}

}  // namespace

TEST_CASE("logits equal the formulas") {
  const std::string type = GENERATE(as<std::string>{}, "llama", "qwen3");
  const std::string scaling = GENERATE(as<std::string>{}, "none", "linear", "llama3");
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const bool library_attention = GENERATE(false, true);
  CAPTURE(type, scaling, static_cast<int>(dtype), library_attention);
  const Folder folder("logits");
  TinyCheckpoint tiny = tiny_checkpoint(type);
  if (scaling == "linear") tiny.config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.5}};
  if (scaling == "llama3") {
    // With 8 frequencies of 1 … 10^-3.5: some are kept, one is in between, some are scaled.
    tiny.config["rope_scaling"] = {{"rope_type", "llama3"},
                                   {"factor", 8.0},
                                   {"low_freq_factor", 1.0},
                                   {"high_freq_factor", 4.0},
                                   {"original_max_position_embeddings", 64}};
  }
  write_checkpoint(folder, tiny, dtype);
  EngineOptions options;
  options.page_size = 16;
  options.pages = 100;
  options.library_attention = library_attention;
  CHECK(largest_difference(tiny, folder, options) < 1e-4);
}

TEST_CASE("a wrong theta shows in the logits: the comparison can fail") {
  const Folder folder("logits-wrong");
  TinyCheckpoint tiny = tiny_checkpoint("llama");
  write_checkpoint(folder, tiny, DType::f32);
  tiny.config["rope_theta"] = 11000.0;
  EngineOptions options;
  options.page_size = 16;
  options.pages = 100;
  CHECK(largest_difference(tiny, folder, options) > 1e-2);
}
