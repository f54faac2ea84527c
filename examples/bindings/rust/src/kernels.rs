// SPDX-License-Identifier: Apache-2.0
//! Kernels on the engine's own memory (CPU), for engines with their own scheduler and tables.

use crate::cache::expect_length;
use crate::call::{call, initialised, pointer, pointer_mut, sized};
use crate::enums::*;
use crate::error::{Error, Result};
use crate::executor::{Executor, Lent};
use crate::ffi::*;
use crate::options::*;
use crate::tensor::Tensor;
use std::ptr;

options! {
    /// The model and its memory.
    KernelsOptions<'m>: growpage_kernel, growpage_kernel_init {
        /// Layers.
        layers: i32,
        /// A multiple of kv_heads.
        query_heads: i32,
        /// KV heads.
        kv_heads: i32,
        /// Of Q and K.
        head_dim: i32,
        /// 0 = head_dim.
        value_dim: i32,
        /// Tokens a page.
        page_size: i32,
        /// CPU kernels.
        isa: Isa,
    } {
        /// Slots of the longest request.
        max_slots: i32,
        /// `[layer, page, kv_head, token, head_dim]`; needed.
        k: Option<Tensor<'m>>,
        /// `[layer, page, kv_head, token, value_dim]`; none = a view of K.
        v: Option<Tensor<'m>>,
        /// None = no rotation.
        rope: Option<Rope<'m>>,
        /// How demand is measured.
        demand: DemandOptions<'m>,
        /// Which tokens survive.
        retention: RetentionOptions,
        /// None = the calling thread.
        executor: Option<&'m dyn Executor>,
        /// 0 = 1 / sqrt(head_dim).
        softmax_scale: f32,
    }
}

/// Query summaries in the engine's memory: [`Kernels::summaries`] makes them.
pub struct Summaries {
    options: SummaryOptions,
    shape: [i32; 4],
    // u64 for its alignment.
    summaries: Vec<u64>,
    query_rms: Vec<f32>,
    window: Vec<f32>,
    steps: Vec<i64>,
}

impl Summaries {
    fn to_c(&self) -> growpage_summary_state {
        // SAFETY: a struct that begins with struct_size.
        let mut c: growpage_summary_state = unsafe { sized() };
        c.summaries = self.summaries.as_ptr() as *mut _;
        c.query_rms = self.query_rms.as_ptr() as *mut f32;
        c.window = pointer(&self.window) as *mut f32;
        c.steps = self.steps.as_ptr() as *mut i64;
        c
    }
}

/// What demand and scores of one request are computed from.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// Of all requests.
    pub summaries: &'a Summaries,
    /// This one's.
    pub summary_slot: i32,
    /// Of the latest query: true length − 1.
    pub position: i64,
}

/// Where a request's rows are.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// `[pages]` physical pages.
    pub pages: &'a [i32],
    /// Used slots.
    pub slots: i32,
}

/// Retention scores `[layer, kv_head, stride]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// Of all slots.
    pub values: Vec<f32>,
    /// At least the slots.
    pub stride: usize,
}

/// Which rows a compaction keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// `[layer, kv_head, words]`, bit s % 64 of word s / 64 = slot s.
    pub bits: Vec<u64>,
    /// Words a (layer, head).
    pub words: usize,
    /// `[pages]` rows kept over all layers and heads.
    pub page_kept: Vec<i32>,
}

/// Kernels over borrowed K and V. They share a workspace, hence `&mut`.
pub struct Kernels<'m> {
    c: growpage_kernel,
    options: KernelsOptions<'m>,
    // To keep what `c` and queries point to; boxed, so that moving this moves nothing.
    tensors: Box<(Tensor<'m>, Option<Tensor<'m>>)>,
    executor: Box<Lent<'m>>,
    workspace: Vec<u64>,
}

impl<'m> Kernels<'m> {
    /// Allocates the workspace for requests of up to `max_slots` slots.
    pub fn new(options: &KernelsOptions<'m>) -> Result<Kernels<'m>> {
        let k = options.k.ok_or_else(|| Error::invalid("KernelsOptions::k", "none", "a tensor"))?;
        let tensors = Box::new((k, options.v));
        let executor = Box::new(Lent::new(options.executor));
        let mut c = options.to_c();
        c.k = tensors.0.to_be_written("k")?;
        if let Some(v) = &tensors.1 {
            c.v = v.to_be_written("v")?;
        }
        c.executor = executor.pointer();
        let mut bytes = 0;
        // SAFETY: pointers to locals.
        call(|| unsafe { growpage_workspace_size(&c, options.max_slots, &mut bytes) })?;
        let workspace = vec![0u64; bytes / 8 + 1];
        Ok(Kernels { c, options: options.clone(), tensors, executor, workspace })
    }

    fn kernel(&mut self, table: Table) -> growpage_kernel {
        growpage_kernel {
            slots: table.slots,
            block_table: pointer(table.pages),
            pages: table.pages.len(),
            k: &self.tensors.0.c,
            executor: self.executor.pointer(),
            workspace: self.workspace.as_mut_ptr().cast(),
            workspace_bytes: self.workspace.len() * 8,
            ..self.c
        }
    }

    fn lanes(&self) -> usize {
        self.options.layers as usize * self.options.kv_heads as usize
    }

    fn page_count(&self, slots: i32) -> usize {
        let page = self.options.page_size.max(1);
        (i64::from(slots.max(0)) + i64::from(page) - 1) as usize / page as usize
    }

    /// Zeroed memory for the summaries of `options.slots` requests.
    pub fn summaries(&self, options: &SummaryOptions) -> Result<Summaries> {
        // SAFETY: a sized struct; pointers to locals.
        let mut sizes: growpage_summary_sizes = unsafe { sized() };
        call(|| unsafe { growpage_summary_get_sizes(&self.c, &options.to_c(), &mut sizes) })?;
        let o = &self.options;
        Ok(Summaries {
            options: options.clone(),
            shape: [o.layers, o.query_heads, o.kv_heads, o.head_dim],
            summaries: vec![0; sizes.summaries / 8 + 1],
            query_rms: vec![0.0; sizes.query_rms / 4],
            window: vec![0.0; sizes.window / 4],
            steps: vec![0; sizes.steps / 8],
        })
    }

    fn fits(&self, summaries: &Summaries) -> Result<()> {
        let o = &self.options;
        if summaries.shape == [o.layers, o.query_heads, o.kv_heads, o.head_dim] {
            return Ok(());
        }
        Err(Error::invalid("summaries", "of another model", "Kernels::summaries of this one"))
    }

    /// Updates `entries` with `queries` `[layers, entry, query_head, head_dim]`, after q-norm and
    /// before RoPE, from layer `first_layer` on.
    pub fn update_summaries(
        &mut self,
        summaries: &mut Summaries,
        entries: &[growpage_summary_entry],
        queries: &Tensor,
        first_layer: i32,
    ) -> Result<()> {
        self.fits(summaries)?;
        let layers = i32::try_from(queries.shape()[0]).unwrap_or(i32::MAX);
        let (options, state) = (summaries.options.to_c(), summaries.to_c());
        let (first, count) = (pointer(entries), entries.len());
        // SAFETY: slices with their lengths; the summaries have the sizes the library gave.
        call(|| unsafe {
            growpage_update_summaries(
                &self.c,
                &options,
                &state,
                first,
                count,
                &queries.c,
                first_layer,
                layers,
            )
        })
    }

    /// Runs `function` with the query in C.
    fn with_query(
        &mut self,
        table: Table,
        query: Query,
        function: impl FnOnce(&growpage_kernel, &growpage_query) -> growpage_status,
    ) -> Result<()> {
        self.fits(query.summaries)?;
        let rope = self.options.rope.as_ref().map(Rope::full_c).transpose()?;
        let demand = self.options.demand.full_c(self.options.layers)?;
        let retention = self.options.retention.to_c();
        let (summary, state) = (query.summaries.options.to_c(), query.summaries.to_c());
        // SAFETY: the right init.
        let mut c = unsafe { initialised(growpage_query_init) };
        (c.summary, c.state) = (&summary, &state);
        c.rope = rope.as_ref().map_or(ptr::null(), |rope| rope);
        (c.demand, c.retention) = (&demand, &retention);
        c.softmax_scale = self.options.softmax_scale;
        (c.summary_slot, c.position) = (query.summary_slot, query.position);
        let kernel = self.kernel(table);
        call(|| function(&kernel, &c))
    }

    /// Demand of a request over its candidates: all pages but the newest.
    pub fn measure_demand(&mut self, query: Query, table: Table) -> Result<growpage_demand> {
        let mut demand = growpage_demand { short_sum: 0.0, long_sum: 0.0, count: 0 };
        // SAFETY: the library checks pages against K.
        self.with_query(table, query, |kernel, query| unsafe {
            growpage_measure_demand(kernel, query, &mut demand)
        })?;
        Ok(demand)
    }

    /// Retention score of every used slot, and the demand from the same pass. With global_decay,
    /// `old` holds the scores of the last compaction for the slots [0, its count).
    pub fn score(
        &mut self,
        query: Query,
        table: Table,
        old: Option<(Scores, i32)>,
    ) -> Result<(Scores, growpage_demand)> {
        let lanes = self.lanes();
        let stride = table.slots.max(1) as usize;
        let (mut scores, old_slots) =
            old.unwrap_or_else(|| (Scores { values: vec![0.0; lanes * stride], stride }, 0));
        self.check_scores(&scores, stride.max(old_slots.max(0) as usize))?;
        let mut demand = growpage_demand { short_sum: 0.0, long_sum: 0.0, count: 0 };
        let (first, stride) = (pointer_mut(&mut scores.values), scores.stride as i64);
        // SAFETY: the lengths were checked.
        self.with_query(table, query, |kernel, query| unsafe {
            growpage_score(kernel, query, old_slots, first, stride, &mut demand)
        })?;
        Ok((scores, demand))
    }

    /// Chooses `keep` of the private pages' slots per (layer, head); `marks` `[pages]` PAGE_* bits.
    pub fn select(
        &mut self,
        scores: &Scores,
        marks: &[u8],
        table: Table,
        keep: i32,
        protected_slots: i32,
    ) -> Result<Selection> {
        let slots = table.slots.max(1) as usize;
        self.check_scores(scores, slots)?;
        let pages = self.page_count(table.slots);
        expect_length("marks", marks.len(), pages)?;
        let words = (slots + 63) / 64;
        let mut out =
            Selection { bits: vec![0; self.lanes() * words], words, page_kept: vec![0; pages] };
        let retention = self.options.retention.to_c();
        let (first, stride) = (pointer(&scores.values), scores.stride as i64);
        let (bits, kept) = (pointer_mut(&mut out.bits), pointer_mut(&mut out.page_kept));
        let (kernel, marks, words) = (self.kernel(table), pointer(marks), words as i64);
        // SAFETY: the lengths were checked.
        call(|| unsafe {
            growpage_select(
                &kernel,
                &retention,
                first,
                stride,
                marks,
                protected_slots,
                keep,
                bits,
                words,
                kept,
            )
        })?;
        Ok(out)
    }

    /// Moves the kept rows out of the plan's victim pages, in place; all slots of `pages` are used.
    /// Afterwards the table is: the pages but the victims, in order, then the victims. `scores`
    /// follow their rows.
    pub fn compact(
        &mut self,
        plan: &growpage_compaction_plan,
        selection: &Selection,
        marks: &[u8],
        pages: &[i32],
        scores: Option<&mut Scores>,
    ) -> Result<()> {
        let slots = pages.len() * self.options.page_size.max(0) as usize;
        expect_length("marks", marks.len(), pages.len())?;
        let words = selection.words;
        expect_length("Selection::bits", selection.bits.len(), self.lanes() * words)?;
        if words * 64 < slots {
            return Err(Error::invalid("Selection::words", words, &format!("for {slots} slots")));
        }
        let (mut first, mut stride) = (ptr::null_mut(), 0);
        if let Some(scores) = scores {
            self.check_scores(scores, slots)?;
            (first, stride) = (pointer_mut(&mut scores.values), scores.stride as i64);
        }
        let kernel = self.kernel(Table { pages, slots: i32::try_from(slots).unwrap_or(-1) });
        let (marks, bits, words) = (pointer(marks), pointer(&selection.bits), words as i64);
        // SAFETY: the lengths were checked.
        call(|| unsafe { growpage_compact(&kernel, marks, plan, bits, words, first, stride) })
    }

    fn check_scores(&self, scores: &Scores, slots: usize) -> Result<()> {
        expect_length("Scores::values", scores.values.len(), self.lanes() * scores.stride)?;
        if scores.stride >= slots {
            return Ok(());
        }
        Err(Error::invalid("Scores::stride", scores.stride, &format!("at least {slots}")))
    }
}
