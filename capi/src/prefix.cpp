// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <span>
#include <string>

#include "convert.hpp"
#include "growpage/prefix/prefix_index.hpp"
#include "handle.hpp"
#include "structs.hpp"

namespace growpage::capi {

namespace {

/// Behind a growpage_prefix_index.
struct IndexObject {
  using Handle = growpage_prefix_index;
  static constexpr HandleKind kind = HandleKind::prefix_index;
  static constexpr const char* name = "growpage_prefix_index";

  explicit IndexObject(const Hooks& h) : hooks(h) {}

  /// invalid_argument unless `page` is one of the index's, published or not as wanted.
  Status require_page(std::int32_t page, bool published) const {
    Status s;
    if (!detail::require_range(s, "page", page, 0, pages - 1)) return s;
    if (index->published(PageId{page}) == published) return {};
    return Status::invalid("page", std::int64_t{page},
                           published ? "a published page" : "a page that is not published");
  }
  [[nodiscard]] std::span<const TokenId> page_of(const std::int32_t* tokens) const noexcept {
    return {tokens, static_cast<std::size_t>(page_size)};
  }

  Hooks hooks;
  std::optional<PrefixIndex> index;
  std::int64_t pages = 0;
  std::int32_t page_size = 0;
};

PrefixLink from_c(const growpage_prefix_link& link) noexcept {
  return {{link.hash.low, link.hash.high}, link.id};
}

growpage_prefix_link to_c(const PrefixLink& link) noexcept {
  return {{link.hash.low, link.hash.high}, link.id};
}

}  // namespace

}  // namespace growpage::capi

using namespace growpage;
using namespace growpage::capi;
using growpage::detail::require_not_null;

extern "C" {

growpage_status growpage_prefix_root(const growpage_key* key, growpage_prefix_link* root) {
  return run(nullptr, [&]() -> Status {
    Status s;
    ExtraKey extra;
    if (!require_not_null(s, "root", root)) return s;
    if (s = read_key(key, extra); !s.ok()) return s;
    *root = to_c(prefix_root(extra));
    return {};
  });
}

growpage_status growpage_prefix_join_modality(const growpage_prefix_link* parent,
                                              const growpage_key* key,
                                              growpage_prefix_link* joined) {
  return run(nullptr, [&]() -> Status {
    Status s;
    ExtraKey extra;
    if (!require_not_null(s, "parent", parent) || !require_not_null(s, "joined", joined)) return s;
    if (s = read_key(key, extra); !s.ok()) return s;
    *joined = to_c(with_modality(from_c(*parent), modality_digest(extra.modality)));
    return {};
  });
}

growpage_status growpage_hash_page(const growpage_hash* parent, const int32_t* tokens, size_t count,
                                   growpage_hash* hash) {
  return run(nullptr, [&]() -> Status {
    Status s;
    if (!require_not_null(s, "parent", parent) || !require_array(s, "tokens", tokens, count) ||
        !require_not_null(s, "hash", hash)) {
      return s;
    }
    const Hash128 digest = hash_page({parent->low, parent->high}, {tokens, count});
    *hash = {digest.low, digest.high};
    return {};
  });
}

growpage_status growpage_prefix_index_create(int64_t pages, int32_t page_size,
                                             const growpage_hooks* hooks,
                                             growpage_prefix_index** index) {
  return run(nullptr, [&]() -> Status {
    Status s;
    Hooks memory;
    if (!require_not_null(s, "index", index)) return s;
    if (s = Hooks::read(hooks, memory); !s.ok()) return s;
    Result<PrefixIndex> core = PrefixIndex::create(pages, page_size);
    if (!core.ok()) return core.status();
    Owned<IndexObject> made(memory);
    made->index.emplace(std::move(core).value());
    made->pages = pages;
    made->page_size = page_size;
    return made.publish(index);
  });
}

growpage_status growpage_prefix_index_destroy(growpage_prefix_index* index) {
  return destroy<IndexObject>(index, [](IndexObject&) -> Status { return {}; });
}

growpage_status growpage_prefix_index_lookup(const growpage_prefix_index* index,
                                             const growpage_prefix_link* parent,
                                             const int32_t* tokens, int32_t* page,
                                             growpage_prefix_link* link) {
  return with<IndexObject>(index, [&](IndexObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "parent", parent) || !require_not_null(s, "tokens", tokens) ||
        !require_not_null(s, "page", page) || !require_not_null(s, "link", link)) {
      return s;
    }
    const PrefixIndex::Match match = o.index->lookup(from_c(*parent), o.page_of(tokens));
    *page = match.page.valid() ? match.page.value : -1;
    if (match.page.valid()) *link = to_c(match.link);
    return {};
  });
}

growpage_status growpage_prefix_index_publish(growpage_prefix_index* index, int32_t page,
                                              const growpage_prefix_link* parent,
                                              const int32_t* tokens, growpage_prefix_link* link,
                                              int32_t* first) {
  return with<IndexObject>(index, [&](IndexObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "parent", parent) || !require_not_null(s, "tokens", tokens) ||
        !require_not_null(s, "link", link) || !require_not_null(s, "first", first)) {
      return s;
    }
    if (s = o.require_page(page, false); !s.ok()) return s;
    const PrefixIndex::Published published =
        o.index->publish(PageId{page}, from_c(*parent), o.page_of(tokens));
    *link = to_c(published.link);
    *first = published.first ? 1 : 0;
    return {};
  });
}

growpage_status growpage_prefix_index_withdraw(growpage_prefix_index* index, int32_t page,
                                               growpage_hash* hash, int32_t* last) {
  return with<IndexObject>(index, [&](IndexObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "hash", hash) || !require_not_null(s, "last", last)) return s;
    if (s = o.require_page(page, true); !s.ok()) return s;
    const PrefixIndex::Withdrawn withdrawn = o.index->withdraw(PageId{page});
    *hash = {withdrawn.hash.low, withdrawn.hash.high};
    *last = withdrawn.last ? 1 : 0;
    return {};
  });
}

growpage_status growpage_prefix_index_lru_push(growpage_prefix_index* index, int32_t page) {
  return with<IndexObject>(index, [&](IndexObject& o) -> Status {
    if (Status s = o.require_page(page, true); !s.ok()) return s;
    o.index->lru_remove(PageId{page});
    o.index->lru_push(PageId{page});
    return {};
  });
}

growpage_status growpage_prefix_index_lru_remove(growpage_prefix_index* index, int32_t page) {
  return with<IndexObject>(index, [&](IndexObject& o) -> Status {
    if (Status s = o.require_page(page, true); !s.ok()) return s;
    o.index->lru_remove(PageId{page});
    return {};
  });
}

growpage_status growpage_prefix_index_lru_oldest(const growpage_prefix_index* index,
                                                 int32_t* page) {
  return with<IndexObject>(index, [&](IndexObject& o) -> Status {
    Status s;
    if (!require_not_null(s, "page", page)) return s;
    const PageId oldest = o.index->lru_oldest();
    *page = oldest.valid() ? oldest.value : -1;
    return {};
  });
}
}
