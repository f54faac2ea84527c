// SPDX-License-Identifier: Apache-2.0
#include "paged_memory.hpp"

#include <algorithm>

#include "growpage/cache/batch_tables.hpp"

namespace growpage::runtime {
namespace {

constexpr std::int32_t piece_tokens = 64;  // a long prefill chunk is work for several threads

}  // namespace

PagedMemory::PagedMemory(Cache& cache, Executor executor, bool library_attention)
    : cache_(cache),
      executor_(executor),
      library_attention_(library_attention),
      scratch_(static_cast<std::size_t>(executor.workers)) {}

void PagedMemory::add_pieces(std::int32_t tokens, std::int32_t first_length) {
  const auto sequence = static_cast<std::int64_t>(sequences_.size()) - 1;
  auto token = static_cast<std::int64_t>(positions_.size());
  positions_.resize(positions_.size() + static_cast<std::size_t>(tokens));
  counts_.push_back(tokens);
  for (std::int32_t done = 0; done < tokens; done += piece_tokens, token += piece_tokens) {
    pieces_.push_back(
        {sequence, token, std::min(piece_tokens, tokens - done), first_length + done});
  }
}

Status PagedMemory::begin(const StepPlan& plan) {
  sequences_.clear();
  counts_.clear();
  positions_.clear();
  pieces_.clear();
  summaries_.clear();
  summary_tokens_.clear();
  decode_lengths_.clear();
  for (const PrefillChunk& chunk : plan.prefills) {
    sequences_.push_back(chunk.sequence);
    add_pieces(chunk.tokens, chunk.first_slot + 1);
    if (chunk.summary.valid()) {
      summaries_.push_back({chunk.summary.value, 1});
      summary_tokens_.push_back(static_cast<std::int64_t>(positions_.size()) - 1);
    }
  }
  decode_token_ = static_cast<std::int64_t>(positions_.size());
  decode_sequence_ = static_cast<std::int64_t>(sequences_.size());
  for (const DecodeItem& item : plan.decodes) {
    sequences_.push_back(item.sequence);
    if (library_attention_) {
      decode_lengths_.push_back(item.kv_length);
      positions_.push_back(0);
      counts_.push_back(1);
    } else {
      add_pieces(1, item.kv_length);
    }
    if (item.summary.valid()) {
      summaries_.push_back({item.summary.value, item.summary_first ? 1 : 0});
      summary_tokens_.push_back(static_cast<std::int64_t>(positions_.size()) - 1);
    }
  }
  slots_.resize(positions_.size());
  if (Status s = fill_token_tables(cache_, sequences_, counts_, {slots_, positions_}); !s.ok()) {
    return s;
  }
  const Result<std::int64_t> stride = padded_stride(cache_, sequences_);
  if (!stride.ok()) return stride.status();
  stride_ = *stride;
  tables_.resize(sequences_.size() * static_cast<std::size_t>(stride_));
  return fill_padded_tables(cache_, sequences_, {tables_, stride_, 0, {}});
}

Status PagedMemory::observe(std::int32_t layer, const float* q, std::int64_t token_stride) {
  if (summaries_.empty()) return {};
  const std::int64_t size = std::int64_t{cache_.shape().query_heads} * cache_.shape().head_dim;
  summary_queries_.resize(summaries_.size() * static_cast<std::size_t>(size));
  float* to = summary_queries_.data();
  for (const std::int64_t token : summary_tokens_) {
    to = std::copy_n(q + token * token_stride, size, to);
  }
  return cache_.update_summaries(summaries_, {summary_queries_.data()}, layer, 1);
}

const void* PagedMemory::to_cache_dtype(const float* rows, std::int64_t size,
                                        std::vector<std::uint16_t>& out) {
  const DType dtype = cache_.kv().k.dtype;
  if (dtype == DType::f32) return rows;
  out.resize(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) store_element(out.data(), dtype, i, rows[i]);
  return out.data();
}

Status PagedMemory::append(std::int32_t layer, const float* k, const float* v) {
  const CacheShape& shape = cache_.shape();
  const std::int64_t size =
      static_cast<std::int64_t>(slots_.size()) * shape.kv_heads * shape.head_dim;
  return cache_.append_kv(layer, slots_, to_cache_dtype(k, size, k_narrow_),
                          to_cache_dtype(v, size, v_narrow_));
}

Status PagedMemory::attend(std::int32_t layer, const float* q, float* out) {
  const CacheShape& shape = cache_.shape();
  const auto tasks = static_cast<std::int64_t>(pieces_.size()) * shape.kv_heads;
  executor_.for_each(tasks, [&](std::int64_t task, std::int32_t worker) {
    attend_piece(pieces_[static_cast<std::size_t>(task / shape.kv_heads)], layer,
                 static_cast<std::int32_t>(task % shape.kv_heads), q, out,
                 scratch_[static_cast<std::size_t>(worker)]);
  });
  if (decode_lengths_.empty()) return {};
  const std::int64_t first = decode_token_ * shape.query_heads * shape.head_dim;
  const auto tables = std::span<const std::int32_t>(tables_).subspan(
      static_cast<std::size_t>(decode_sequence_ * stride_));
  return cache_.attention(layer, tables, stride_, decode_lengths_, q + first, out + first);
}

void PagedMemory::attend_piece(const Piece& piece, std::int32_t layer, std::int32_t head,
                               const float* q, float* out, AttentionScratch& scratch) const {
  const CacheShape& shape = cache_.shape();
  const KvView& kv = cache_.kv();
  const std::int32_t slots = piece.first_length + piece.tokens - 1;
  scratch.k_blocks.clear();
  scratch.v_blocks.clear();
  for (std::int64_t p = 0; p * shape.page_size < slots; ++p) {
    const PageId page{tables_[static_cast<std::size_t>(piece.table * stride_ + p)]};
    scratch.k_blocks.push_back(kv.k.row(layer, page, head, 0));
    scratch.v_blocks.push_back(kv.v.row(layer, page, head, 0));
  }
  HeadAttention attention;
  attention.k = scratch.k_blocks.data();
  attention.v = scratch.v_blocks.data();
  attention.dtype = kv.k.dtype;
  attention.k_stride = kv.k.layout.token_stride;
  attention.v_stride = kv.v.layout.token_stride;
  attention.block_size = shape.page_size;
  attention.token_stride = std::int64_t{shape.query_heads} * shape.head_dim;
  attention.tokens = piece.tokens;
  attention.group = shape.group();
  attention.head_dim = shape.head_dim;
  attention.first_length = piece.first_length;
  const std::int64_t at =
      piece.token * attention.token_stride + std::int64_t{head} * shape.group() * shape.head_dim;
  attention.q = q + at;
  attention.out = out + at;
  runtime::attend(attention, scratch);
}

}  // namespace growpage::runtime
