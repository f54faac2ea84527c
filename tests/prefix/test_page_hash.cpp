// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <set>
#include <vector>

#include "growpage/prefix/page_hash.hpp"
#include "support/catch.hpp"

using namespace growpage;

namespace {

PrefixLink root(std::string_view salt, std::string_view lora) {
  ExtraKey key;
  key.salt = salt;
  key.lora = lora;
  return prefix_root(key);
}

}  // namespace

TEST_CASE("salt and LoRA are separate domains, and where one ends matters") {
  const std::vector<PrefixLink> roots = {root("", ""),
                                         root("X", ""),
                                         root("", "X"),
                                         root("X", "X"),
                                         root("ab", "c"),
                                         root("a", "bc"),
                                         root("abc", ""),
                                         root("", "abc"),
                                         root(std::string_view("\0", 1), ""),
                                         root("", std::string_view("\0", 1))};
  std::set<Hash128> hashes;
  std::set<std::uint64_t> ids;
  for (const PrefixLink& link : roots) {
    hashes.insert(link.hash);
    ids.insert(link.id);
    CHECK((link.id >> 63) == 1);
  }
  CHECK(hashes.size() == roots.size());
  CHECK(ids.size() == roots.size());
  CHECK(root("ab", "c").hash == root("ab", "c").hash);
  CHECK(root("ab", "c").id == root("ab", "c").id);
}

TEST_CASE("the root does not depend on the modality: it joins at its own page") {
  ExtraKey key;
  key.modality = "image";
  key.modality_from = 100;
  CHECK(prefix_root(key).hash == root("", "").hash);
  CHECK(prefix_root(key).id == root("", "").id);
}

TEST_CASE("the modality changes digest and identity, by the parent's identity too") {
  const PrefixLink parent = root("", "");
  const Hash128 a = modality_digest("a"), b = modality_digest("b");
  CHECK(a != b);
  CHECK(modality_digest("") != a);
  CHECK(with_modality(parent, a).hash != parent.hash);
  CHECK(with_modality(parent, a).hash != with_modality(parent, b).hash);
  CHECK(with_modality(parent, a).id != with_modality(parent, b).id);
  CHECK(with_modality(parent, a).id == with_modality(parent, a).id);
  CHECK((with_modality(parent, a).id >> 63) == 1);
  const PrefixLink twin{parent.hash, 5};  // one digest, another identity
  CHECK(with_modality(twin, a).hash == with_modality(parent, a).hash);
  CHECK(with_modality(twin, a).id != with_modality(parent, a).id);
  // "X" as a modality is not "X" as a salt.
  CHECK(with_modality(parent, modality_digest("X")).hash != root("X", "").hash);
}

TEST_CASE("a page's hash depends on every token and on all 128 bits of its parent") {
  for (const std::size_t size : {16U, 32U, 64U, 256U, 1024U}) {
    std::vector<TokenId> tokens(size);
    std::iota(tokens.begin(), tokens.end(), 1);
    const Hash128 parent{11, 22};
    std::set<Hash128> hashes = {hash_page(parent, tokens)};
    for (std::size_t i = 0; i < size; ++i) {
      ++tokens[i];
      hashes.insert(hash_page(parent, tokens));
      --tokens[i];
    }
    for (int bit = 0; bit < 64; ++bit) {
      hashes.insert(hash_page({parent.low ^ (std::uint64_t{1} << bit), parent.high}, tokens));
      hashes.insert(hash_page({parent.low, parent.high ^ (std::uint64_t{1} << bit)}, tokens));
    }
    CHECK(hashes.size() == 1 + size + 128);
    CHECK(hash_page(parent, tokens) == *hashes.find(hash_page(parent, tokens)));
  }
}

TEST_CASE("hashes are stable: other processes and versions get these") {
  std::vector<TokenId> tokens(256);
  std::iota(tokens.begin(), tokens.end(), 0);
  CHECK(hash_page({1, 2}, std::span(tokens).first(16)) ==
        Hash128{0x7796a770644943a8ULL, 0x0e92925ff0281dc8ULL});
  CHECK(hash_page({1, 2}, tokens) == Hash128{0xd22e593eb76b06a7ULL, 0x72c4d85a3c2f9bbbULL});
}
