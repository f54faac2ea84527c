// SPDX-License-Identifier: Apache-2.0
//! The paged KV cache: options, sequences, batch tables, events.

use crate::call::{call, in_call_back, initialised, pointer, pointer_mut, sized, text};
use crate::enums::*;
use crate::error::{Error, Result};
use crate::executor::{Executor, Lent};
use crate::ffi::*;
use crate::log::{Hooks, Log};
use crate::options::*;
use crate::prefix::Key;
use crate::rows::slice;
use crate::tensor::Tensor;
use std::ptr;

options! {
    /// Of growpage_cache_options; what is borrowed must outlive the cache.
    CacheOptions<'m>: growpage_cache_options, growpage_cache_options_init {
        /// Who runs the kernels.
        backend: Backend,
        /// Layers of the model.
        layers: i32,
        /// A multiple of kv_heads.
        query_heads: i32,
        /// KV heads.
        kv_heads: i32,
        /// Of Q and K.
        head_dim: i32,
        /// 0 = head_dim.
        value_dim: i32,
        /// Tokens a page: a power of two ≥ 16; 256.
        page_size: i32,
        /// Alive at once, swapped ones included; 1024.
        max_sequences: i32,
        /// Physical pages.
        pages: i64,
        /// 0 = no swap.
        host_pages: i64,
        /// 0 = no KV events recorded.
        event_capacity: i64,
        /// 1024.
        max_pages_per_sequence: i32,
        /// Compactions and swaps in flight, 256.
        max_fences: i32,
        /// On by default.
        prefix_caching: bool,
        /// Of library-owned KV memory.
        dtype: DType,
        /// Of library-owned KV memory.
        layout: Layout,
        /// CPU kernels.
        isa: Isa,
        /// 0 = 1 / sqrt(head_dim).
        softmax_scale: f32,
        /// Scores kept from demand to compaction, 8.
        score_buffers: i32,
    } {
        /// `[layer, page, kv_head, token, head_dim]`; none = the library allocates.
        k: Option<Tensor<'m>>,
        /// `[layer, page, kv_head, token, value_dim]`; none with a k = a view of K.
        v: Option<Tensor<'m>>,
        /// Query summaries.
        summary: SummaryOptions,
        /// None = no rotation.
        rope: Option<Rope<'m>>,
        /// How demand is measured.
        demand: DemandOptions<'m>,
        /// Usually the policy's.
        retention: RetentionOptions,
        /// None = the calling thread.
        executor: Option<&'m dyn Executor>,
        /// None: nothing is logged.
        log: Option<Log>,
    }
}

/// What [`Cache::admit`] made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its id.
    pub sequence: u64,
    /// Tokens found in the prefix cache, appended and computed already.
    pub matched: i64,
}

/// A sequence as it was when asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Block table (host pages while swapped).
    pub pages: Vec<i32>,
    /// Tokens appended: the position of the next token.
    pub length: i64,
    /// Used slots; equals length until the first compaction.
    pub slots: i32,
    /// Slots whose K/V exists.
    pub computed: i32,
    /// So far.
    pub compactions: i32,
    /// Under a fence: do not read, write or decode it.
    pub busy: bool,
    /// Its pages are in host memory.
    pub swapped: bool,
    /// Pages that no other table holds.
    pub private_pages: i32,
}

/// Model dimensions, for lengths that the library cannot check.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub query_heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub value_dim: usize,
    pub dtype: DType,
}

/// Pages, prefix sharing and, with `Backend::Cpu`, KV memory and kernels.
pub struct Cache<'m> {
    pub(crate) handle: *mut growpage_cache,
    pub(crate) shape: Shape,
    _hooks: Hooks,
    _executor: Lent<'m>,
}

impl<'m> Cache<'m> {
    /// A new cache.
    pub fn new(options: &CacheOptions<'m>) -> Result<Cache<'m>> {
        let hooks = Hooks::new(options.log.as_ref());
        let executor = Lent::new(options.executor);
        let mut c = options.to_c();
        if let Some(k) = &options.k {
            c.k = k.to_be_written("k")?;
        }
        if let Some(v) = &options.v {
            c.v = v.to_be_written("v")?;
        }
        let rope = options.rope.as_ref().map(Rope::full_c).transpose()?;
        let (summary, retention) = (options.summary.to_c(), options.retention.to_c());
        let demand = options.demand.full_c(options.layers)?;
        c.rope = rope.as_ref().map_or(ptr::null(), |rope| rope);
        (c.summary, c.retention, c.demand) = (&summary, &retention, &demand);
        c.executor = executor.pointer();
        let mut handle = ptr::null_mut();
        // SAFETY: what stays borrowed lives for 'm or in the new object.
        call(|| unsafe { growpage_cache_create(&c, hooks.pointer(), &mut handle) })?;
        let size = |value: i32| value.max(0) as usize;
        let dtype = options
            .k
            .as_ref()
            .map_or(options.dtype, |k| DType::try_from(k.c.dtype).unwrap_or(options.dtype));
        let value_dim = if options.value_dim > 0 { options.value_dim } else { options.head_dim };
        let shape = Shape {
            query_heads: size(options.query_heads),
            kv_heads: size(options.kv_heads),
            head_dim: size(options.head_dim),
            value_dim: size(value_dim),
            dtype,
        };
        Ok(Cache { handle, shape, _hooks: hooks, _executor: executor })
    }

    /// Counts of pages and of what was done so far.
    pub fn info(&self) -> Result<growpage_cache_info> {
        // SAFETY: a sized struct.
        let mut info = unsafe { sized() };
        call(|| unsafe { growpage_cache_get_info(self.handle, &mut info) })?;
        Ok(info)
    }

    /// A new sequence that begins with the longest cached prefix of `tokens`, at most all but one.
    pub fn admit(&self, tokens: &[i32], key: Key) -> Result<Admitted> {
        let (first, count) = (pointer(tokens), tokens.len());
        let (mut sequence, mut matched) = (0, 0);
        // SAFETY: a slice with its length, pointers to locals.
        call(|| unsafe {
            let key = key.to_c();
            growpage_cache_admit(self.handle, first, count, &key, &mut sequence, &mut matched)
        })?;
        Ok(Admitted { sequence, matched })
    }

    /// Tokens that admit would match now, without taking anything.
    pub fn match_length(&self, tokens: &[i32], key: Key) -> Result<i64> {
        let (first, count) = (pointer(tokens), tokens.len());
        let mut matched = 0;
        // SAFETY: a slice with its length, pointers to locals.
        call(|| unsafe {
            growpage_cache_match_length(self.handle, first, count, &key.to_c(), &mut matched)
        })?;
        Ok(matched)
    }

    /// One more page at the end of the table.
    pub fn grow(&self, sequence: u64) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_cache_grow(self.handle, sequence) })
    }

    /// Pages for `slots` more slots, all or none.
    pub fn reserve(&self, sequence: u64, slots: i64) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_cache_reserve(self.handle, sequence, slots) })
    }

    /// Takes the next slots for `tokens`. A copy must run before anything else touches either page.
    pub fn append(&self, sequence: u64, tokens: &[i32]) -> Result<Option<growpage_page_copy>> {
        self.append_from(sequence, tokens.len() as i64, pointer(tokens))
    }

    /// The same for `count` tokens whose values nobody knows.
    pub fn append_unknown(&self, sequence: u64, count: i64) -> Result<Option<growpage_page_copy>> {
        self.append_from(sequence, count, ptr::null())
    }

    fn append_from(
        &self,
        sequence: u64,
        count: i64,
        tokens: *const i32,
    ) -> Result<Option<growpage_page_copy>> {
        let mut copy = growpage_page_copy { source: -1, target: -1 };
        // SAFETY: null, or as many tokens.
        call(|| unsafe { growpage_cache_append(self.handle, sequence, count, tokens, &mut copy) })?;
        Ok((copy.source >= 0).then_some(copy))
    }

    /// One token to each sequence, until one cannot take it: how many have theirs, the copies to
    /// run first, and why the next one has not. Panics unless there is a token for each.
    pub fn append_batch(
        &self,
        sequences: &[u64],
        tokens: &[i32],
    ) -> (usize, Vec<growpage_page_copy>, Result<()>) {
        assert_eq!(sequences.len(), tokens.len());
        let mut copies = vec![growpage_page_copy { source: -1, target: -1 }; tokens.len()];
        let (mut count, mut done) = (0, 0);
        // SAFETY: three arrays of one length, pointers to locals.
        let result = call(|| unsafe {
            growpage_cache_append_batch(
                self.handle,
                pointer(sequences),
                pointer(tokens),
                tokens.len(),
                pointer_mut(&mut copies),
                &mut count,
                &mut done,
            )
        });
        copies.truncate(count);
        (done, copies, result)
    }

    /// K/V of the first `slots` slots exists now: full pages become matchable.
    pub fn mark_computed(&self, sequence: u64, slots: i32) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_cache_mark_computed(self.handle, sequence, slots) })
    }

    /// A second sequence with the same content, pages shared until written.
    pub fn fork(&self, sequence: u64) -> Result<u64> {
        let mut fork = 0;
        // SAFETY: pointers to locals.
        call(|| unsafe { growpage_cache_fork(self.handle, sequence, &mut fork) })?;
        Ok(fork)
    }

    /// Forgets the tokens from `length` on.
    pub fn truncate(&self, sequence: u64, length: i64) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_cache_truncate(self.handle, sequence, length) })
    }

    /// The sequence is gone; its pages return.
    pub fn release(&self, sequence: u64) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_cache_release(self.handle, sequence) })
    }

    pub(crate) fn view(&self, sequence: u64) -> Result<growpage_sequence> {
        // SAFETY: a sized struct.
        let mut view = unsafe { sized() };
        call(|| unsafe { growpage_cache_get_sequence(self.handle, sequence, &mut view) })?;
        Ok(view)
    }

    /// The sequence as it is now, with a copy of its block table.
    pub fn sequence(&self, sequence: u64) -> Result<Sequence> {
        let view = self.view(sequence)?;
        Ok(Sequence {
            // SAFETY: valid until the next call that changes the sequence.
            pages: unsafe { slice(view.pages, view.page_count) }.to_vec(),
            length: view.length,
            slots: view.slots,
            computed: view.computed,
            compactions: view.compactions,
            busy: view.busy != 0,
            swapped: view.swapped != 0,
            private_pages: view.private_pages,
        })
    }

    /// page · page_size + offset of a logical slot.
    pub fn physical_slot(&self, sequence: u64, slot: i32) -> Result<i64> {
        let mut physical = 0;
        // SAFETY: pointers to locals.
        call(|| unsafe {
            growpage_cache_physical_slot(self.handle, sequence, slot, &mut physical)
        })?;
        Ok(physical)
    }

    /// Withdraws every unreferenced cached page and forgets published ones.
    pub fn clear_prefix_cache(&self) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_cache_clear_prefix_cache(self.handle) })
    }

    /// Checks every rule of the bookkeeping, O(everything), for debugging.
    pub fn check_invariants(&self) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_cache_check_invariants(self.handle) })
    }

    /// The oldest KV events, up to `events.len()`, at the beginning of `events`: how many, and how
    /// many were lost so far because nobody drained in time.
    pub fn drain_events(&self, events: &mut [growpage_kv_event]) -> Result<(usize, i64)> {
        let (mut count, mut dropped) = (0, 0);
        if events.is_empty() {
            return Ok((0, 0));
        }
        let (first, capacity) = (pointer_mut(events), events.len());
        // SAFETY: a slice with its length, pointers to locals.
        call(|| unsafe {
            growpage_cache_drain_events(self.handle, first, capacity, &mut count, &mut dropped)
        })?;
        Ok((count, dropped))
    }

    /// K and V of the cache `[layer, page, kv_head, token, dim]`: its own memory or the engine's.
    /// Reading or writing through the pointers is the caller's to get right.
    pub fn kv(&self) -> Result<(growpage_tensor, growpage_tensor)> {
        // SAFETY: the right init; pointers to locals.
        let (mut k, mut v) =
            unsafe { (initialised(growpage_tensor_init), initialised(growpage_tensor_init)) };
        call(|| unsafe { growpage_cache_get_kv(self.handle, &mut k, &mut v) })?;
        Ok((k, v))
    }
}

impl growpage_cache_info {
    /// "none", "cpu-scalar", …
    pub fn name(&self) -> &'static str {
        // SAFETY: static, by the C interface.
        unsafe { text(self.backend_name) }
    }
}

impl Drop for Cache<'_> {
    fn drop(&mut self) {
        // Inside a call-back it is leaked: the library must not be called there.
        if !in_call_back() {
            // SAFETY: the handle is ours and not used again; schedulers borrow the cache.
            unsafe { growpage_cache_destroy(self.handle) };
        }
    }
}

/// Refuses a slice of another length.
pub(crate) fn expect_length(name: &str, length: usize, expected: usize) -> Result<()> {
    if length == expected {
        return Ok(());
    }
    Err(Error::invalid(name, length, &format!("{expected} elements")))
}
