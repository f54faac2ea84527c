// SPDX-License-Identifier: Apache-2.0
//! Batch tables, and the books of compaction, swap and fences.

use crate::cache::{expect_length, Cache};
use crate::call::{call, pointer, pointer_mut};
use crate::enums::{Shared, Strategy};
use crate::error::Result;
use crate::ffi::*;
use std::ptr;

impl Cache<'_> {
    /// FlashAttention-like: smallest stride of [`Cache::padded_tables`] for these sequences.
    pub fn padded_stride(&self, sequences: &[u64]) -> Result<i64> {
        let mut stride = 0;
        let (first, count) = (pointer(sequences), sequences.len());
        // SAFETY: a slice with its length; null tables only ask.
        call(|| unsafe {
            let none = ptr::null_mut;
            growpage_cache_padded_tables(
                self.handle,
                first,
                count,
                &mut stride,
                none(),
                0,
                0,
                none(),
            )
        })?;
        Ok(stride)
    }

    /// FlashAttention-like: `block_table` `[batch, stride]`, padded, and `cache_seqlens` `[batch]`
    /// used slots.
    pub fn padded_tables(
        &self,
        sequences: &[u64],
        mut stride: i64,
        pad: i32,
        block_table: &mut [i32],
        cache_seqlens: &mut [i32],
    ) -> Result<()> {
        expect_length("cache_seqlens", cache_seqlens.len(), sequences.len())?;
        if sequences.is_empty() {
            return Ok(());
        }
        let (first, count, size) = (pointer(sequences), sequences.len(), block_table.len());
        let (table, lengths) = (pointer_mut(block_table), pointer_mut(cache_seqlens));
        // SAFETY: slices with their lengths.
        call(|| unsafe {
            growpage_cache_padded_tables(
                self.handle,
                first,
                count,
                &mut stride,
                table,
                size,
                pad,
                lengths,
            )
        })
    }

    /// FlashInfer-like: indptr `[batch + 1]`, indices, last_page_len `[batch]`.
    pub fn compressed_tables(&self, sequences: &[u64]) -> Result<(Vec<i32>, Vec<i32>, Vec<i32>)> {
        let (first, count) = (pointer(sequences), sequences.len());
        let (mut indptr, mut last) = (vec![0; count + 1], vec![0; count]);
        let (ends, lengths) = (pointer_mut(&mut indptr), pointer_mut(&mut last));
        let mut size = 0;
        // SAFETY: slices with their lengths; null indices only ask.
        call(|| unsafe {
            let none = ptr::null_mut();
            growpage_cache_compressed_tables(
                self.handle,
                first,
                count,
                ends,
                none,
                0,
                &mut size,
                lengths,
            )
        })?;
        let mut indices = vec![0; size];
        if size > 0 {
            let pages = pointer_mut(&mut indices);
            // SAFETY: slices with their lengths.
            call(|| unsafe {
                growpage_cache_compressed_tables(
                    self.handle,
                    first,
                    count,
                    ends,
                    pages,
                    size,
                    &mut size,
                    lengths,
                )
            })?;
        }
        Ok((indptr, indices, last))
    }

    /// Physical slots and true positions, each `[Σ counts]`, of the last `counts[i]` tokens of each
    /// sequence, sequence after sequence, oldest first.
    pub fn token_tables(
        &self,
        sequences: &[u64],
        counts: &[i32],
        slot_mapping: &mut [i64],
        positions: &mut [i64],
    ) -> Result<()> {
        expect_length("counts", counts.len(), sequences.len())?;
        expect_length("positions", positions.len(), slot_mapping.len())?;
        let (first, batch, size) = (pointer(sequences), sequences.len(), slot_mapping.len());
        let (slots, places) = (pointer_mut(slot_mapping), pointer_mut(positions));
        let none = ptr::null_mut();
        // SAFETY: slices with their lengths.
        call(|| unsafe {
            growpage_cache_token_tables(
                self.handle,
                first,
                batch,
                pointer(counts),
                slots,
                places,
                size,
                none,
            )
        })
    }

    /// Starts freeing 1 or 2 pages of a full, computed sequence; it is busy until the ticket's
    /// fence completes. The copies run first.
    pub fn begin_compaction(
        &self,
        sequence: u64,
        victims: i32,
        strategy: Strategy,
        shared: Shared,
    ) -> Result<(growpage_ticket, Vec<growpage_page_copy>)> {
        let none = growpage_page_copy { source: -1, target: -1 };
        let mut copies = vec![none; self.view(sequence)?.page_count];
        let (first, capacity) = (pointer_mut(&mut copies), copies.len());
        let mut ticket = growpage_ticket { sequence: 0, fence: 0, victims: 0, strategy: 0 };
        let mut count = 0;
        let (strategy, shared) = (strategy as i32, shared as i32);
        // SAFETY: slices with their lengths, pointers to locals.
        call(|| unsafe {
            growpage_cache_begin_compaction(
                self.handle,
                sequence,
                victims,
                strategy,
                shared,
                first,
                capacity,
                &mut count,
                &mut ticket,
            )
        })?;
        copies.truncate(count);
        Ok((ticket, copies))
    }

    /// `[pages]` PAGE_* bits of each page of the table.
    pub fn page_marks(&self, sequence: u64, protected_slots: i32) -> Result<Vec<u8>> {
        let mut marks = vec![0; self.view(sequence)?.page_count];
        let (first, size) = (pointer_mut(&mut marks), marks.len());
        // SAFETY: a slice with its length.
        call(|| unsafe {
            growpage_cache_page_marks(self.handle, sequence, protected_slots, first, size)
        })?;
        Ok(marks)
    }

    /// Carries a plan out in the block table, for engines that move the rows themselves.
    /// `page_kept` `[pages]` rows kept per page, or empty; `rows_per_page` = layers · kv_heads ·
    /// page_size.
    pub fn apply_compaction(
        &self,
        ticket: &growpage_ticket,
        plan: &growpage_compaction_plan,
        page_kept: &[i32],
        rows_per_page: i32,
    ) -> Result<()> {
        let (first, pages) = (pointer(page_kept), page_kept.len());
        // SAFETY: a slice with its length.
        call(|| unsafe {
            growpage_cache_apply_compaction(self.handle, ticket, plan, first, pages, rows_per_page)
        })
    }

    /// Gives a compaction of the caller's own up before it was applied.
    pub fn cancel_compaction(&self, ticket: &growpage_ticket) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_cache_cancel_compaction(self.handle, ticket) })
    }

    /// Gives device pages up for host pages: the transfers to run, and the fence that ends them.
    pub fn swap_out(&self, sequence: u64) -> Result<(Vec<growpage_page_transfer>, u64)> {
        self.swap(growpage_cache_swap_out, sequence)
    }

    /// The way back, all or none.
    pub fn swap_in(&self, sequence: u64) -> Result<(Vec<growpage_page_transfer>, u64)> {
        self.swap(growpage_cache_swap_in, sequence)
    }

    fn swap(&self, function: Swap, sequence: u64) -> Result<(Vec<growpage_page_transfer>, u64)> {
        let none = growpage_page_transfer { device: -1, host: -1 };
        let mut transfers = vec![none; self.view(sequence)?.page_count];
        let (first, capacity) = (pointer_mut(&mut transfers), transfers.len());
        let (mut count, mut fence) = (0, 0);
        // SAFETY: a slice with its length, pointers to locals.
        call(|| unsafe {
            function(self.handle, sequence, first, capacity, &mut count, &mut fence)
        })?;
        transfers.truncate(count);
        Ok((transfers, fence))
    }

    /// The device work behind a fence of the caller's own is done.
    pub fn complete_fence(&self, fence: u64) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_cache_complete_fence(self.handle, fence) })
    }

    /// A fence of the engine's own: guarded rows are neither overwritten nor moved.
    pub fn guard(&self, sequence: u64) -> Result<u64> {
        let mut fence = 0;
        // SAFETY: pointers to locals.
        call(|| unsafe { growpage_cache_guard(self.handle, sequence, &mut fence) })?;
        Ok(fence)
    }
}

type Swap = unsafe extern "C" fn(
    *mut growpage_cache,
    u64,
    *mut growpage_page_transfer,
    usize,
    *mut usize,
    *mut u64,
) -> growpage_status;

/// Chooses the pages to empty from marks and kept rows, each `[pages]`; AtCapacity when fewer than
/// `victims` qualify.
pub fn plan_compaction(
    marks: &[u8],
    page_kept: &[i32],
    victims: i32,
    strategy: Strategy,
) -> Result<growpage_compaction_plan> {
    expect_length("page_kept", page_kept.len(), marks.len())?;
    let mut plan = growpage_compaction_plan { strategy: 0, victims: 0, victim: [-1; 2] };
    let (first, kept, pages) = (pointer(marks), pointer(page_kept), marks.len());
    // SAFETY: slices with their lengths.
    call(|| unsafe {
        growpage_plan_compaction(first, kept, pages, victims, strategy as i32, &mut plan)
    })?;
    Ok(plan)
}
