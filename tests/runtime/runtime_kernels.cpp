// SPDX-License-Identifier: Apache-2.0
// The pieces: a token's result must not depend on its company, and has to be the right one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "attention.hpp"
#include "layers.hpp"
#include "matmul.hpp"
#include "sampler.hpp"
#include "support/catch.hpp"
#include "thread_pool.hpp"

using namespace growpage;           // NOLINT(google-build-using-namespace)
using namespace growpage::runtime;  // NOLINT(google-build-using-namespace)

namespace {

std::vector<float> random_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& x : out) x = normal(generator);
  return out;
}

bool same_bits(const float* a, const float* b, std::int64_t count) {
  return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("a matmul's rows are right and depend on nothing but themselves") {
  const std::int64_t in = GENERATE(16, 48, 576);
  const std::int64_t out = GENERATE(1, 37, 256, 700);
  CAPTURE(in, out);
  Matrix w(out, in);
  w.data = random_floats(out * in, 1);
  constexpr std::int64_t most = 70;
  const std::vector<float> x = random_floats(padded_rows(most) * in, 2);
  ThreadPool pool(2);
  std::vector<float> y(static_cast<std::size_t>(most * out));
  matmul(pool.executor(), w, x.data(), most, y.data());
  for (std::int64_t t = 0; t < most; ++t) {
    for (std::int64_t f = 0; f < out; f += 13) {
      double sum = 0;
      for (std::int64_t i = 0; i < in; ++i) {
        sum += double{w.row(f)[i]} * double{x[static_cast<std::size_t>(t * in + i)]};
      }
      REQUIRE(double{y[static_cast<std::size_t>(t * out + f)]} == Approx(sum).margin(1e-4));
    }
  }
  // Each row alone, and at every place of a tile among other company.
  std::vector<float> alone(static_cast<std::size_t>(matmul_tile * out));
  for (std::int64_t t = 0; t < most; ++t) {
    std::vector<float> tile = random_floats(matmul_tile * in, static_cast<std::uint32_t>(t));
    const std::int64_t place = (t * 7) % matmul_tile;
    std::copy_n(x.data() + t * in, in, tile.data() + place * in);
    matmul({}, w, tile.data(), place + 1, alone.data());
    REQUIRE(same_bits(alone.data() + place * out, y.data() + t * out, out));
  }
}

namespace {

/// A sequence's K and V for one head, cut into blocks of any size.
struct Rows {
  static constexpr std::int32_t dim = 32;
  std::vector<float> k, v;
  explicit Rows(std::int64_t count)
      : k(random_floats(count * dim, 3)), v(random_floats(count * dim, 4)) {}

  std::vector<float> attend(const std::vector<float>& q, std::int32_t first_token,
                            std::int32_t tokens, std::int32_t group, std::int32_t block) const {
    const auto count = static_cast<std::int32_t>(k.size()) / dim;
    std::vector<const void*> k_blocks, v_blocks;
    for (std::int32_t s = 0; s < count; s += block) {
      k_blocks.push_back(k.data() + s * dim);
      v_blocks.push_back(v.data() + s * dim);
    }
    std::vector<float> out(static_cast<std::size_t>(tokens * group * dim));
    HeadAttention a;
    a.k = k_blocks.data();
    a.v = v_blocks.data();
    a.k_stride = a.v_stride = dim;
    a.block_size = block;
    a.token_stride = group * dim;
    a.tokens = tokens;
    a.group = group;
    a.head_dim = dim;
    a.first_length = first_token + 1;
    a.q = q.data() + std::int64_t{first_token} * group * dim;
    a.out = out.data();
    AttentionScratch scratch;
    runtime::attend(a, scratch);
    return out;
  }
};

}  // namespace

TEST_CASE("attention is right and depends on neither blocks nor chunks") {
  const std::int32_t group = GENERATE(1, 3, 20);
  const float size = GENERATE(1.0F, 30.0F);  // of queries: logits far beyond what e^x can hold
  constexpr std::int32_t count = 77;
  constexpr std::int32_t dim = Rows::dim;
  const Rows rows(count);
  std::vector<float> q = random_floats(count * group * dim, 5);
  for (float& x : q) x *= size;
  const std::vector<float> whole = rows.attend(q, 0, count, group, count);
  for (std::int32_t t = 0; t < count; t += 19) {
    for (std::int32_t g = 0; g < group; ++g) {
      const float* query = q.data() + (t * group + g) * dim;
      std::vector<double> weights;
      double total = 0;
      for (std::int32_t s = 0; s <= t; ++s) {
        double logit = 0;
        for (std::int32_t i = 0; i < dim; ++i) {
          logit += double{query[i]} * double{rows.k[static_cast<std::size_t>(s * dim + i)]};
        }
        weights.push_back(logit / std::sqrt(dim));
      }
      const double best = *std::ranges::max_element(weights);
      for (double& weight : weights) total += weight = std::exp(weight - best);
      for (std::int32_t i = 0; i < dim; ++i) {
        double sum = 0;
        for (std::int32_t s = 0; s <= t; ++s) {
          sum += weights[static_cast<std::size_t>(s)] *
                 double{rows.v[static_cast<std::size_t>(s * dim + i)]};
        }
        const float got = whole[static_cast<std::size_t>((t * group + g) * dim + i)];
        REQUIRE(double{got} == Approx(sum / total).margin(1e-5 * double{size}));
      }
    }
  }
  for (const std::int32_t block : {16, 32}) {
    CHECK(same_bits(rows.attend(q, 0, count, group, block).data(), whole.data(),
                    std::int64_t{count} * group * dim));
  }
  for (std::int32_t t = 0; t < count; ++t) {
    REQUIRE(same_bits(rows.attend(q, t, 1, group, 16).data(), whole.data() + t * group * dim,
                      std::int64_t{group} * dim));
  }
}

TEST_CASE("norm and SwiGLU") {
  const std::vector<float> x{3, -4, 0, 5};
  const std::vector<float> weight{1, 2, 1, 0.5F};
  float out[4];
  rms_norm(x, weight.data(), 0.5F, out);  // mean of squares 12.5, with ε 13
  CHECK(double{out[0]} == Approx(3 / std::sqrt(13.0)));
  CHECK(double{out[1]} == Approx(-8 / std::sqrt(13.0)));
  CHECK(double{out[3]} == Approx(2.5 / std::sqrt(13.0)));
  const float gate_up[]{0, 1, -2, 7, 3, 10};
  float mid[3];
  swiglu(gate_up, 3, mid);
  CHECK(mid[0] == 0);
  CHECK(double{mid[1]} == Approx(3 / (1 + std::exp(-1.0))));
  CHECK(double{mid[2]} == Approx(-20 / (1 + std::exp(2.0))));
}

TEST_CASE("samples follow the distribution and its nucleus") {
  // Probabilities 0.5, 0.25, 0.15, 0.1, in another order.
  const std::vector<float> logits{std::log(0.15F), std::log(0.5F), std::log(0.1F), std::log(0.25F)};
  Sampler sampler;
  CHECK(sampler.sample(logits, {}, 1, 1) == 1);
  CHECK(sampler.sample(std::vector<float>{2, 5, 5}, {}, 1, 1) == 1);  // ties: the lower token
  const auto frequencies = [&](const SamplingOptions& options) {
    std::vector<double> counts(4);
    for (int i = 0; i < 20000; ++i) {
      counts[static_cast<std::size_t>(sampler.sample(logits, options, 3, i))] += 1.0 / 20000;
    }
    return counts;
  };
  const auto all = frequencies({1.0, 1.0, 8});
  CHECK(all[0] == Approx(0.15).margin(0.015));
  CHECK(all[1] == Approx(0.5).margin(0.015));
  CHECK(all[2] == Approx(0.1).margin(0.015));
  CHECK(all[3] == Approx(0.25).margin(0.015));
  const auto nucleus = frequencies({1.0, 0.7, 8});  // 0.5 and 0.25 reach it
  CHECK(nucleus[0] + nucleus[2] == 0);
  CHECK(nucleus[1] == Approx(2.0 / 3).margin(0.015));
  const auto cold = frequencies({0.5, 1.0, 8});  // squares, normalised
  CHECK(cold[1] == Approx(0.25 / 0.345).margin(0.015));
  CHECK_FALSE(SamplingOptions{-1, 1, 0}.validate().ok());
  CHECK_FALSE(SamplingOptions{1, 1.5, 0}.validate().ok());
}
