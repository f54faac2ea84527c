// SPDX-License-Identifier: Apache-2.0
//! Kernels over a cache's memory (CPU backend).

use crate::cache::{expect_length, Cache};
use crate::call::{call, pointer};
use crate::error::{Error, Result};
use crate::ffi::*;
use crate::tensor::{Element, Tensor};
use std::ptr;

impl Cache<'_> {
    /// Updates the summaries of `entries` with `queries` `[layers, entry, query_head, head_dim]`,
    /// after q-norm and before RoPE, from layer `first_layer` on.
    pub fn update_summaries(
        &self,
        entries: &[growpage_summary_entry],
        queries: &Tensor,
        first_layer: i32,
    ) -> Result<()> {
        let layers = i32::try_from(queries.shape()[0]).unwrap_or(i32::MAX);
        let (first, count) = (pointer(entries), entries.len());
        let stream = ptr::null_mut();
        // SAFETY: a slice with its length; the tensor checked its memory.
        call(|| unsafe {
            growpage_cache_update_summaries(
                self.handle,
                first,
                count,
                &queries.c,
                first_layer,
                layers,
                stream,
            )
        })
    }

    /// Demand of a sequence; `position` of its latest query.
    pub fn measure_demand(
        &self,
        sequence: u64,
        summary_slot: i32,
        position: i64,
    ) -> Result<growpage_demand> {
        let mut demand = growpage_demand { short_sum: 0.0, long_sum: 0.0, count: 0 };
        let stream = ptr::null_mut();
        // SAFETY: pointers to locals.
        call(|| unsafe {
            growpage_cache_measure_demand(
                self.handle,
                sequence,
                summary_slot,
                position,
                &mut demand,
                stream,
            )
        })?;
        Ok(demand)
    }

    /// Runs a begun compaction. Complete the ticket's fence afterwards, but not after AtCapacity,
    /// which cancels it: what must be kept does not fit.
    pub fn compact(
        &self,
        ticket: &growpage_ticket,
        summary_slot: i32,
        position: i64,
        protected_slots: i32,
    ) -> Result<()> {
        let stream = ptr::null_mut();
        // SAFETY: a living handle.
        call(|| unsafe {
            growpage_cache_compact(
                self.handle,
                ticket,
                summary_slot,
                position,
                protected_slots,
                stream,
            )
        })
    }

    /// Page copies, in order.
    pub fn run_copies(&self, copies: &[growpage_page_copy]) -> Result<()> {
        let (first, count) = (pointer(copies), copies.len());
        // SAFETY: a slice with its length.
        call(|| unsafe { growpage_cache_run_copies(self.handle, first, count, ptr::null_mut()) })
    }

    /// Pages to host memory, and with them the summary row (−1 = none).
    pub fn run_swap_out(
        &self,
        sequence: u64,
        summary_slot: i32,
        transfers: &[growpage_page_transfer],
    ) -> Result<()> {
        let (first, count, stream) = (pointer(transfers), transfers.len(), ptr::null_mut());
        // SAFETY: a slice with its length.
        call(|| unsafe {
            growpage_cache_run_swap_out(self.handle, sequence, summary_slot, first, count, stream)
        })
    }

    /// The way back; the summary row may be another one.
    pub fn run_swap_in(
        &self,
        sequence: u64,
        summary_slot: i32,
        transfers: &[growpage_page_transfer],
    ) -> Result<()> {
        let (first, count, stream) = (pointer(transfers), transfers.len(), ptr::null_mut());
        // SAFETY: a slice with its length.
        call(|| unsafe {
            growpage_cache_run_swap_in(self.handle, sequence, summary_slot, first, count, stream)
        })
    }

    /// Writes `k` `[token, kv_head, head_dim]` and `v` `[token, kv_head, value_dim]`, RoPE applied,
    /// in the cache's element type, to the physical slots `slot_mapping` `[token]` (negative =
    /// skip). `v` is none when V is a view of K.
    pub fn append_kv<T: Element>(
        &self,
        layer: i32,
        slot_mapping: &[i64],
        k: &[T],
        v: Option<&[T]>,
    ) -> Result<()> {
        let (shape, tokens) = (self.shape, slot_mapping.len());
        if T::DTYPE != shape.dtype {
            let allowed = format!("{:?}", shape.dtype);
            return Err(Error::invalid("element type", format!("{:?}", T::DTYPE), &allowed));
        }
        expect_length("k", k.len(), tokens * shape.kv_heads * shape.head_dim)?;
        if let Some(v) = v {
            expect_length("v", v.len(), tokens * shape.kv_heads * shape.value_dim)?;
        }
        let (slots, k, v) = (pointer(slot_mapping), pointer(k), v.map_or(ptr::null(), pointer));
        let stream = ptr::null_mut();
        // SAFETY: the lengths were checked.
        call(|| unsafe {
            growpage_cache_append_kv(self.handle, layer, slots, tokens, k.cast(), v.cast(), stream)
        })
    }

    /// Reference attention: `q` `[batch, query_head, head_dim]`, RoPE applied, over `block_table`
    /// `[batch, stride]` and `kv_lengths` `[batch]` used slots, into `out` `[batch, query_head,
    /// value_dim]`.
    pub fn attention(
        &self,
        layer: i32,
        block_table: &[i32],
        kv_lengths: &[i32],
        q: &[f32],
        out: &mut [f32],
    ) -> Result<()> {
        let (shape, batch) = (self.shape, kv_lengths.len());
        let stride = block_table.len() / batch.max(1);
        expect_length("block_table", block_table.len(), batch * stride)?;
        expect_length("q", q.len(), batch * shape.query_heads * shape.head_dim)?;
        expect_length("out", out.len(), batch * shape.query_heads * shape.value_dim)?;
        let (table, lengths) = (pointer(block_table), pointer(kv_lengths));
        let (q, out, stream) = (q.as_ptr(), out.as_mut_ptr(), ptr::null_mut());
        // SAFETY: the lengths were checked.
        call(|| unsafe {
            growpage_cache_attention(
                self.handle,
                layer,
                batch,
                table,
                stride as i64,
                lengths,
                q,
                out,
                stream,
            )
        })
    }
}
