// SPDX-License-Identifier: Apache-2.0
//! growpage.h, declaration by declaration; DLPack, which Rust has no arrays for, is left out. What
//! each thing means is said there. `tests/header.rs` compares all of it with the header.
#![allow(non_camel_case_types, missing_docs)]

use std::os::raw::{c_char, c_void};

pub const GROWPAGE_MAX_DIMS: usize = 6;

/// Name, size and fields with their offsets of a struct, for the comparison with C.
pub type StructLayout = (&'static str, usize, Vec<(&'static str, usize)>);

macro_rules! structs {
    ($($name:ident { $($field:ident: $kind:ty,)+ })+) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name { $(pub $field: $kind,)+ }
        )+
        /// Layouts of all structs.
        pub fn layouts() -> Vec<StructLayout> {
            vec![$({
                let value = std::mem::MaybeUninit::<$name>::uninit();
                let base = value.as_ptr();
                let fields = vec![$((
                    stringify!($field),
                    // SAFETY: an address is taken, nothing is read.
                    unsafe { std::ptr::addr_of!((*base).$field) as usize - base as usize },
                ),)+];
                (stringify!($name), std::mem::size_of::<$name>(), fields)
            },)+]
        }
    };
}

macro_rules! constants {
    ($($name:ident = $value:expr;)+) => {
        $(pub const $name: i32 = $value;)+
        /// Names and values of all constants.
        pub const CONSTANTS: &[(&str, i32)] = &[$((stringify!($name), $value),)+];
    };
}

macro_rules! handles {
    ($($name:ident)+) => {
        $(
            #[repr(C)]
            pub struct $name { _opaque: [u8; 0] }
        )+
    };
}

pub type growpage_status = i32;
pub type growpage_task =
    Option<unsafe extern "C" fn(argument: *mut c_void, index: i64, worker: i32)>;
pub type growpage_decide_callback =
    Option<unsafe extern "C" fn(context: *mut c_void, boundary: *const growpage_boundary) -> i32>;

handles! {
    growpage_cache
    growpage_policy
    growpage_scheduler
    growpage_prefix_index
}

constants! {
    GROWPAGE_OK = 0;
    GROWPAGE_OUT_OF_PAGES = 1;
    GROWPAGE_OUT_OF_SEQUENCES = 2;
    GROWPAGE_OUT_OF_SLOTS = 3;
    GROWPAGE_AT_CAPACITY = 4;
    GROWPAGE_OUT_OF_FENCES = 5;
    GROWPAGE_OUT_OF_HOST_PAGES = 6;
    GROWPAGE_BUSY = 7;
    GROWPAGE_INVALID_ARGUMENT = -1;
    GROWPAGE_STALE_ID = -2;
    GROWPAGE_BEHIND_COMPACTION = -3;
    GROWPAGE_REQUEST_TOO_LARGE = -4;
    GROWPAGE_UNSUPPORTED = -5;
    GROWPAGE_PROTOCOL_ERROR = -6;
    GROWPAGE_OUT_OF_MEMORY = -7;
    GROWPAGE_INTERNAL_ERROR = -8;
    GROWPAGE_DEVICE_ERROR = -9;
    GROWPAGE_LOG_ERROR = 0;
    GROWPAGE_LOG_WARNING = 1;
    GROWPAGE_LOG_DEBUG = 2;
    GROWPAGE_F32 = 0;
    GROWPAGE_F16 = 1;
    GROWPAGE_BF16 = 2;
    GROWPAGE_STORAGE_F32 = 0;
    GROWPAGE_STORAGE_F16_STOCHASTIC = 1;
    GROWPAGE_ROPE_HALF_SPLIT = 0;
    GROWPAGE_ROPE_INTERLEAVED = 1;
    GROWPAGE_METRIC_TOP_P = 0;
    GROWPAGE_METRIC_ENTROPY = 1;
    GROWPAGE_GROUP_MEAN = 0;
    GROWPAGE_GROUP_PER_QUERY_HEAD = 1;
    GROWPAGE_SCORE_SUMMARIES = 0;
    GROWPAGE_SCORE_WINDOW = 1;
    GROWPAGE_FILL_HOLES = 0;
    GROWPAGE_IN_ORDER = 1;
    GROWPAGE_SHARED_KEEP = 0;
    GROWPAGE_SHARED_COPY = 1;
    GROWPAGE_BACKEND_NONE = 0;
    GROWPAGE_BACKEND_CPU = 1;
    GROWPAGE_BACKEND_CUDA = 2;
    GROWPAGE_LAYOUT_HND = 0;
    GROWPAGE_LAYOUT_NHD = 1;
    GROWPAGE_ISA_AUTOMATIC = 0;
    GROWPAGE_ISA_SCALAR = 1;
    GROWPAGE_ISA_SIMD = 2;
    GROWPAGE_PAGE_PRIVATE = 1;
    GROWPAGE_PAGE_PROTECTED = 2;
    GROWPAGE_EVENT_STORED = 0;
    GROWPAGE_EVENT_REMOVED = 1;
    GROWPAGE_EVENT_CLEARED = 2;
    GROWPAGE_GROW = 0;
    GROWPAGE_COMPACT = 1;
    GROWPAGE_SHRINK = 2;
    GROWPAGE_PARAMETER_DOUBLE = 0;
    GROWPAGE_PARAMETER_INT = 1;
    GROWPAGE_PREEMPT_RECOMPUTE = 0;
    GROWPAGE_PREEMPT_SWAP = 1;
    GROWPAGE_WAITING = 0;
    GROWPAGE_PREFILLING = 1;
    GROWPAGE_DECODING = 2;
    GROWPAGE_COMPACTING = 3;
    GROWPAGE_SWAPPING_OUT = 4;
    GROWPAGE_SWAPPED = 5;
    GROWPAGE_SWAPPING_IN = 6;
    GROWPAGE_DECISION_GROW = 0;
    GROWPAGE_DECISION_COMPACT = 1;
    GROWPAGE_DECISION_SHRINK = 2;
    GROWPAGE_DECISION_FALLBACK = 3;
    GROWPAGE_DECISION_SWAP_OUT = 4;
    GROWPAGE_DECISION_RECOMPUTE = 5;
}

structs! {
    growpage_error {
        struct_size: usize,
        status: growpage_status,
        reserved: i32,
        argument: *const c_char,
        value: *const c_char,
        allowed: *const c_char,
        message: *const c_char,
    }
    growpage_hooks {
        struct_size: usize,
        allocate: Option<unsafe extern "C" fn(context: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void>,
        deallocate: Option<unsafe extern "C" fn(context: *mut c_void, memory: *mut c_void, bytes: usize)>,
        allocator_context: *mut c_void,
        log: Option<unsafe extern "C" fn(context: *mut c_void, level: i32, message: *const c_char)>,
        log_context: *mut c_void,
        log_level: i32,
        reserved: i32,
    }
    growpage_tensor {
        struct_size: usize,
        data: *mut c_void,
        layer_data: *const *mut c_void,
        dtype: i32,
        ndim: i32,
        shape: [i64; GROWPAGE_MAX_DIMS],
        strides: [i64; GROWPAGE_MAX_DIMS],
    }
    growpage_executor {
        struct_size: usize,
        run: Option<unsafe extern "C" fn(context: *mut c_void, tasks: i64, task: growpage_task, argument: *mut c_void)>,
        context: *mut c_void,
        workers: i32,
        reserved: i32,
    }
    growpage_key {
        struct_size: usize,
        salt: *const c_char,
        salt_size: usize,
        lora: *const c_char,
        lora_size: usize,
        modality: *const c_char,
        modality_size: usize,
        modality_from: i64,
    }
    growpage_summary_options {
        struct_size: usize,
        beta_short: f32,
        beta_long: f32,
        slots: i32,
        window: i32,
        storage: i32,
        reserved: i32,
        seed: u64,
    }
    growpage_rope {
        struct_size: usize,
        rotary_dim: i32,
        pairing: i32,
        inv_freq: *const f32,
        cos_table: *const f32,
        sin_table: *const f32,
        max_position: i64,
        attention_scale: f32,
        reserved: i32,
    }
    growpage_demand_options {
        struct_size: usize,
        p: f32,
        metric: i32,
        group: i32,
        reserved: i32,
        layer_mask: *const u8,
    }
    growpage_retention_options {
        struct_size: usize,
        score: i32,
        strategy: i32,
        shared: i32,
        recent: i32,
        local_per_256: i32,
        sinks: i32,
        protect_prompt: i32,
        window: i32,
        max_pool: i32,
        global_decay: f32,
        redundancy_weight: f32,
        redundancy_temperature: f32,
    }
    growpage_cache_options {
        struct_size: usize,
        backend: i32,
        layers: i32,
        query_heads: i32,
        kv_heads: i32,
        head_dim: i32,
        value_dim: i32,
        page_size: i32,
        max_sequences: i32,
        pages: i64,
        host_pages: i64,
        event_capacity: i64,
        max_pages_per_sequence: i32,
        max_fences: i32,
        prefix_caching: i32,
        dtype: i32,
        layout: i32,
        isa: i32,
        k: *const growpage_tensor,
        v: *const growpage_tensor,
        summary: *const growpage_summary_options,
        rope: *const growpage_rope,
        demand: *const growpage_demand_options,
        retention: *const growpage_retention_options,
        executor: *const growpage_executor,
        softmax_scale: f32,
        score_buffers: i32,
    }
    growpage_cache_info {
        struct_size: usize,
        backend_name: *const c_char,
        backend: i32,
        page_size: i32,
        pages: i64,
        free_pages: i64,
        cached_pages: i64,
        referenced_pages: i64,
        in_flight_pages: i64,
        host_pages: i64,
        free_host_pages: i64,
        sequences: i64,
        evicted_pages: i64,
        copied_pages: i64,
        k_bytes_read: i64,
    }
    growpage_page_copy {
        source: i32,
        target: i32,
    }
    growpage_sequence {
        struct_size: usize,
        pages: *const i32,
        page_count: usize,
        length: i64,
        slots: i32,
        computed: i32,
        compactions: i32,
        busy: i32,
        swapped: i32,
        private_pages: i32,
    }
    growpage_ticket {
        sequence: u64,
        fence: u64,
        victims: i32,
        strategy: i32,
    }
    growpage_compaction_plan {
        strategy: i32,
        victims: i32,
        victim: [i32; 2],
    }
    growpage_page_transfer {
        device: i32,
        host: i32,
    }
    growpage_summary_entry {
        slot: i32,
        first: i32,
    }
    growpage_demand {
        short_sum: f64,
        long_sum: f64,
        count: i64,
    }
    growpage_hash {
        low: u64,
        high: u64,
    }
    growpage_kv_event {
        kind: i32,
        page: i32,
        hash: growpage_hash,
        parent: growpage_hash,
        tokens: i32,
        reserved: i32,
    }
    growpage_boundary {
        struct_size: usize,
        request: u64,
        boundary: i64,
        length: i64,
        pages: i32,
        page_size: i32,
        measured: i32,
        reserved: i32,
        demand: growpage_demand,
        pressure: f64,
    }
    growpage_parameter {
        struct_size: usize,
        name: *const c_char,
        kind: i32,
        reserved: i32,
    }
    growpage_policy_options {
        struct_size: usize,
        threshold: f64,
        low: f64,
        compact_probability: f64,
        seed: u64,
        min_tokens: i32,
        budget_tokens: i32,
        pages: i32,
        initial_pages: i32,
        max_pages: i32,
        reserved: i32,
    }
    growpage_policy_info {
        struct_size: usize,
        name: *const c_char,
        needs_demand: i32,
        may_compact: i32,
        initial_pages: i32,
        max_pages: i32,
    }
    growpage_scheduler_options {
        struct_size: usize,
        max_batched_tokens: i64,
        max_prefill_chunk: i64,
        max_running: i32,
        summary_slots: i32,
        preemption: i32,
        early_slots: i32,
        max_compacting_pages: i64,
        aging_steps: i64,
        decision_capacity: i64,
    }
    growpage_request {
        struct_size: usize,
        tag: u64,
        prompt: *const i32,
        prompt_tokens: usize,
        max_new_tokens: i64,
        priority: i32,
        reserved: i32,
        key: *const growpage_key,
    }
    growpage_swap {
        request: u64,
        sequence: u64,
        fence: u64,
        summary: i32,
        reserved: i32,
        first_transfer: usize,
        transfers: usize,
    }
    growpage_compaction {
        request: u64,
        ticket: growpage_ticket,
        tag: u64,
        summary: i32,
        reserved: i32,
        position: i64,
        protected_slots: i32,
        reserved2: i32,
    }
    growpage_prefill {
        request: u64,
        sequence: u64,
        tag: u64,
        first_position: i64,
        first_slot: i32,
        tokens: i32,
        last: u8,
        reserved: [u8; 3],
        summary: i32,
    }
    growpage_decode {
        request: u64,
        sequence: u64,
        tag: u64,
        token: i32,
        reserved: i32,
        position: i64,
        slot: i64,
        kv_length: i32,
        summary: i32,
        summary_first: u8,
        reserved2: [u8; 7],
    }
    growpage_demand_request {
        request: u64,
        sequence: u64,
        tag: u64,
        summary: i32,
        reserved: i32,
        position: i64,
    }
    growpage_plan {
        struct_size: usize,
        step: i64,
        batched_tokens: i64,
        swap_outs: *const growpage_swap,
        swap_out_count: usize,
        swap_out_stride: usize,
        swap_ins: *const growpage_swap,
        swap_in_count: usize,
        swap_in_stride: usize,
        transfers_out: *const growpage_page_transfer,
        transfer_out_count: usize,
        transfer_out_stride: usize,
        transfers_in: *const growpage_page_transfer,
        transfer_in_count: usize,
        transfer_in_stride: usize,
        copies: *const growpage_page_copy,
        copy_count: usize,
        copy_stride: usize,
        compactions: *const growpage_compaction,
        compaction_count: usize,
        compaction_stride: usize,
        prefills: *const growpage_prefill,
        prefill_count: usize,
        prefill_stride: usize,
        decodes: *const growpage_decode,
        decode_count: usize,
        decode_stride: usize,
        demand: *const growpage_demand_request,
        demand_count: usize,
        demand_stride: usize,
        preempted: *const u64,
        preempted_count: usize,
        preempted_stride: usize,
    }
    growpage_measured_demand {
        request: u64,
        demand: growpage_demand,
    }
    growpage_sampled_token {
        request: u64,
        token: i32,
        stop: u8,
        reserved: [u8; 3],
    }
    growpage_step_result {
        struct_size: usize,
        tokens: *const growpage_sampled_token,
        token_count: usize,
        demand: *const growpage_measured_demand,
        demand_count: usize,
        fences: *const u64,
        fence_count: usize,
        failed: *const u64,
        failed_count: usize,
    }
    growpage_finished {
        request: u64,
        tag: u64,
        generated: i64,
        aborted: u8,
        reserved: [u8; 7],
    }
    growpage_stats {
        struct_size: usize,
        idle: i64,
        waiting: i64,
        running: i64,
        steps: i64,
        submitted: i64,
        refused: i64,
        finished: i64,
        aborted: i64,
        prefill_tokens: i64,
        decode_tokens: i64,
        grow: i64,
        compact: i64,
        shrink: i64,
        fallback: i64,
        free_growth: i64,
        preempt: i64,
        swap_out: i64,
        swap_in: i64,
        recompute: i64,
        prefix_query_tokens: i64,
        prefix_hit_tokens: i64,
        evicted_pages: i64,
        copied_pages: i64,
        kv_token_steps: i64,
        running_steps: i64,
    }
    growpage_decision {
        request: u64,
        tag: u64,
        step: i64,
        kind: i32,
        measured: u8,
        reserved: [u8; 3],
        delta: f64,
        short_ratio: f64,
        long_ratio: f64,
        pages_before: i32,
        pages_after: i32,
        length: i64,
        pressure: f64,
    }
    growpage_prefix_link {
        hash: growpage_hash,
        id: u64,
    }
    growpage_kernel {
        struct_size: usize,
        layers: i32,
        query_heads: i32,
        kv_heads: i32,
        head_dim: i32,
        value_dim: i32,
        page_size: i32,
        isa: i32,
        slots: i32,
        block_table: *const i32,
        pages: usize,
        k: *const growpage_tensor,
        v: *const growpage_tensor,
        executor: *const growpage_executor,
        workspace: *mut c_void,
        workspace_bytes: usize,
    }
    growpage_summary_state {
        struct_size: usize,
        summaries: *mut c_void,
        query_rms: *mut f32,
        window: *mut f32,
        steps: *mut i64,
    }
    growpage_summary_sizes {
        struct_size: usize,
        summaries: usize,
        query_rms: usize,
        window: usize,
        steps: usize,
    }
    growpage_query {
        struct_size: usize,
        summary: *const growpage_summary_options,
        state: *const growpage_summary_state,
        rope: *const growpage_rope,
        demand: *const growpage_demand_options,
        retention: *const growpage_retention_options,
        softmax_scale: f32,
        summary_slot: i32,
        position: i64,
    }
}

extern "C" {
    pub fn growpage_version() -> *const c_char;
    pub fn growpage_api_revision() -> i32;
    pub fn growpage_status_text(status: growpage_status) -> *const c_char;
    pub fn growpage_last_error(error: *mut growpage_error, struct_size: usize);
    pub fn growpage_hooks_init(hooks: *mut growpage_hooks, struct_size: usize) -> growpage_status;
    pub fn growpage_tensor_init(
        tensor: *mut growpage_tensor,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_executor_init(
        executor: *mut growpage_executor,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_key_init(key: *mut growpage_key, struct_size: usize) -> growpage_status;
    pub fn growpage_summary_options_init(
        options: *mut growpage_summary_options,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_rope_init(rope: *mut growpage_rope, struct_size: usize) -> growpage_status;
    pub fn growpage_demand_options_init(
        options: *mut growpage_demand_options,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_retention_options_init(
        options: *mut growpage_retention_options,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_cache_options_init(
        options: *mut growpage_cache_options,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_cache_create(
        options: *const growpage_cache_options,
        hooks: *const growpage_hooks,
        cache: *mut *mut growpage_cache,
    ) -> growpage_status;
    pub fn growpage_cache_destroy(cache: *mut growpage_cache) -> growpage_status;
    pub fn growpage_cache_get_info(
        cache: *const growpage_cache,
        info: *mut growpage_cache_info,
    ) -> growpage_status;
    pub fn growpage_cache_admit(
        cache: *mut growpage_cache,
        tokens: *const i32,
        count: usize,
        key: *const growpage_key,
        sequence: *mut u64,
        matched: *mut i64,
    ) -> growpage_status;
    pub fn growpage_cache_match_length(
        cache: *const growpage_cache,
        tokens: *const i32,
        count: usize,
        key: *const growpage_key,
        matched: *mut i64,
    ) -> growpage_status;
    pub fn growpage_cache_grow(cache: *mut growpage_cache, sequence: u64) -> growpage_status;
    pub fn growpage_cache_reserve(
        cache: *mut growpage_cache,
        sequence: u64,
        slots: i64,
    ) -> growpage_status;
    pub fn growpage_cache_append(
        cache: *mut growpage_cache,
        sequence: u64,
        count: i64,
        tokens: *const i32,
        copy: *mut growpage_page_copy,
    ) -> growpage_status;
    pub fn growpage_cache_append_batch(
        cache: *mut growpage_cache,
        sequences: *const u64,
        tokens: *const i32,
        batch: usize,
        copies: *mut growpage_page_copy,
        copy_count: *mut usize,
        done: *mut usize,
    ) -> growpage_status;
    pub fn growpage_cache_mark_computed(
        cache: *mut growpage_cache,
        sequence: u64,
        slots: i32,
    ) -> growpage_status;
    pub fn growpage_cache_fork(
        cache: *mut growpage_cache,
        sequence: u64,
        fork: *mut u64,
    ) -> growpage_status;
    pub fn growpage_cache_truncate(
        cache: *mut growpage_cache,
        sequence: u64,
        length: i64,
    ) -> growpage_status;
    pub fn growpage_cache_release(cache: *mut growpage_cache, sequence: u64) -> growpage_status;
    pub fn growpage_cache_get_sequence(
        cache: *const growpage_cache,
        sequence: u64,
        view: *mut growpage_sequence,
    ) -> growpage_status;
    pub fn growpage_cache_physical_slot(
        cache: *const growpage_cache,
        sequence: u64,
        slot: i32,
        physical: *mut i64,
    ) -> growpage_status;
    pub fn growpage_cache_clear_prefix_cache(cache: *mut growpage_cache) -> growpage_status;
    pub fn growpage_cache_check_invariants(cache: *const growpage_cache) -> growpage_status;
    pub fn growpage_cache_padded_tables(
        cache: *const growpage_cache,
        sequences: *const u64,
        batch: usize,
        stride: *mut i64,
        block_table: *mut i32,
        size: usize,
        pad: i32,
        cache_seqlens: *mut i32,
    ) -> growpage_status;
    pub fn growpage_cache_compressed_tables(
        cache: *const growpage_cache,
        sequences: *const u64,
        batch: usize,
        indptr: *mut i32,
        indices: *mut i32,
        size: usize,
        count: *mut usize,
        last_page_len: *mut i32,
    ) -> growpage_status;
    pub fn growpage_cache_token_tables(
        cache: *const growpage_cache,
        sequences: *const u64,
        batch: usize,
        counts: *const i32,
        slot_mapping: *mut i64,
        positions: *mut i64,
        size: usize,
        total: *mut usize,
    ) -> growpage_status;
    pub fn growpage_cache_begin_compaction(
        cache: *mut growpage_cache,
        sequence: u64,
        victims: i32,
        strategy: i32,
        shared: i32,
        copies: *mut growpage_page_copy,
        capacity: usize,
        count: *mut usize,
        ticket: *mut growpage_ticket,
    ) -> growpage_status;
    pub fn growpage_cache_page_marks(
        cache: *const growpage_cache,
        sequence: u64,
        protected_slots: i32,
        marks: *mut u8,
        size: usize,
    ) -> growpage_status;
    pub fn growpage_cache_apply_compaction(
        cache: *mut growpage_cache,
        ticket: *const growpage_ticket,
        plan: *const growpage_compaction_plan,
        page_kept: *const i32,
        pages: usize,
        rows_per_page: i32,
    ) -> growpage_status;
    pub fn growpage_cache_cancel_compaction(
        cache: *mut growpage_cache,
        ticket: *const growpage_ticket,
    ) -> growpage_status;
    pub fn growpage_cache_swap_out(
        cache: *mut growpage_cache,
        sequence: u64,
        transfers: *mut growpage_page_transfer,
        capacity: usize,
        count: *mut usize,
        fence: *mut u64,
    ) -> growpage_status;
    pub fn growpage_cache_swap_in(
        cache: *mut growpage_cache,
        sequence: u64,
        transfers: *mut growpage_page_transfer,
        capacity: usize,
        count: *mut usize,
        fence: *mut u64,
    ) -> growpage_status;
    pub fn growpage_cache_complete_fence(cache: *mut growpage_cache, fence: u64)
        -> growpage_status;
    pub fn growpage_cache_guard(
        cache: *mut growpage_cache,
        sequence: u64,
        fence: *mut u64,
    ) -> growpage_status;
    pub fn growpage_demand_delta(demand: *const growpage_demand) -> f64;
    pub fn growpage_cache_get_kv(
        cache: *const growpage_cache,
        k: *mut growpage_tensor,
        v: *mut growpage_tensor,
    ) -> growpage_status;
    pub fn growpage_cache_update_summaries(
        cache: *mut growpage_cache,
        entries: *const growpage_summary_entry,
        count: usize,
        queries: *const growpage_tensor,
        first_layer: i32,
        layers: i32,
        stream: *mut c_void,
    ) -> growpage_status;
    pub fn growpage_cache_measure_demand(
        cache: *mut growpage_cache,
        sequence: u64,
        summary_slot: i32,
        position: i64,
        demand: *mut growpage_demand,
        stream: *mut c_void,
    ) -> growpage_status;
    pub fn growpage_cache_compact(
        cache: *mut growpage_cache,
        ticket: *const growpage_ticket,
        summary_slot: i32,
        position: i64,
        protected_slots: i32,
        stream: *mut c_void,
    ) -> growpage_status;
    pub fn growpage_cache_run_copies(
        cache: *mut growpage_cache,
        copies: *const growpage_page_copy,
        count: usize,
        stream: *mut c_void,
    ) -> growpage_status;
    pub fn growpage_cache_run_swap_out(
        cache: *mut growpage_cache,
        sequence: u64,
        summary_slot: i32,
        transfers: *const growpage_page_transfer,
        count: usize,
        stream: *mut c_void,
    ) -> growpage_status;
    pub fn growpage_cache_run_swap_in(
        cache: *mut growpage_cache,
        sequence: u64,
        summary_slot: i32,
        transfers: *const growpage_page_transfer,
        count: usize,
        stream: *mut c_void,
    ) -> growpage_status;
    pub fn growpage_cache_append_kv(
        cache: *mut growpage_cache,
        layer: i32,
        slot_mapping: *const i64,
        tokens: usize,
        k: *const c_void,
        v: *const c_void,
        stream: *mut c_void,
    ) -> growpage_status;
    pub fn growpage_cache_attention(
        cache: *mut growpage_cache,
        layer: i32,
        batch: usize,
        block_table: *const i32,
        stride: i64,
        kv_lengths: *const i32,
        q: *const f32,
        out: *mut f32,
        stream: *mut c_void,
    ) -> growpage_status;
    pub fn growpage_cache_drain_events(
        cache: *mut growpage_cache,
        events: *mut growpage_kv_event,
        capacity: usize,
        count: *mut usize,
        dropped: *mut i64,
    ) -> growpage_status;
    pub fn growpage_policy_create(
        name: *const c_char,
        hooks: *const growpage_hooks,
        policy: *mut *mut growpage_policy,
    ) -> growpage_status;
    pub fn growpage_policy_create_user(
        decide: growpage_decide_callback,
        context: *mut c_void,
        needs_demand: i32,
        hooks: *const growpage_hooks,
        policy: *mut *mut growpage_policy,
    ) -> growpage_status;
    pub fn growpage_policy_destroy(policy: *mut growpage_policy) -> growpage_status;
    pub fn growpage_policy_get_parameter(
        policy: *const growpage_policy,
        index: usize,
        parameter: *mut growpage_parameter,
    ) -> growpage_status;
    pub fn growpage_policy_set_double(
        policy: *mut growpage_policy,
        name: *const c_char,
        value: f64,
    ) -> growpage_status;
    pub fn growpage_policy_set_int(
        policy: *mut growpage_policy,
        name: *const c_char,
        value: i64,
    ) -> growpage_status;
    pub fn growpage_policy_get_double(
        policy: *const growpage_policy,
        name: *const c_char,
        value: *mut f64,
    ) -> growpage_status;
    pub fn growpage_policy_get_int(
        policy: *const growpage_policy,
        name: *const c_char,
        value: *mut i64,
    ) -> growpage_status;
    pub fn growpage_policy_options_init(
        options: *mut growpage_policy_options,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_policy_set_options(
        policy: *mut growpage_policy,
        options: *const growpage_policy_options,
    ) -> growpage_status;
    pub fn growpage_policy_get_options(
        policy: *const growpage_policy,
        options: *mut growpage_policy_options,
    ) -> growpage_status;
    pub fn growpage_policy_set_retention(
        policy: *mut growpage_policy,
        options: *const growpage_retention_options,
    ) -> growpage_status;
    pub fn growpage_policy_get_retention(
        policy: *const growpage_policy,
        options: *mut growpage_retention_options,
    ) -> growpage_status;
    pub fn growpage_policy_get_info(
        policy: *const growpage_policy,
        page_size: i32,
        info: *mut growpage_policy_info,
    ) -> growpage_status;
    pub fn growpage_policy_validate(
        policy: *const growpage_policy,
        page_size: i32,
    ) -> growpage_status;
    pub fn growpage_policy_decide(
        policy: *mut growpage_policy,
        boundary: *const growpage_boundary,
        decision: *mut i32,
    ) -> growpage_status;
    pub fn growpage_scheduler_options_init(
        options: *mut growpage_scheduler_options,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_scheduler_create(
        cache: *mut growpage_cache,
        policy: *const growpage_policy,
        options: *const growpage_scheduler_options,
        hooks: *const growpage_hooks,
        scheduler: *mut *mut growpage_scheduler,
    ) -> growpage_status;
    pub fn growpage_scheduler_destroy(scheduler: *mut growpage_scheduler) -> growpage_status;
    pub fn growpage_request_init(
        request: *mut growpage_request,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_scheduler_submit(
        scheduler: *mut growpage_scheduler,
        request: *const growpage_request,
        id: *mut u64,
    ) -> growpage_status;
    pub fn growpage_scheduler_abort(scheduler: *mut growpage_scheduler, id: u64)
        -> growpage_status;
    pub fn growpage_scheduler_schedule(
        scheduler: *mut growpage_scheduler,
        plan: *mut growpage_plan,
    ) -> growpage_status;
    pub fn growpage_scheduler_run_before_forward(
        scheduler: *mut growpage_scheduler,
        stream: *mut c_void,
        fences: *mut *const u64,
        count: *mut usize,
    ) -> growpage_status;
    pub fn growpage_scheduler_run_after_forward(
        scheduler: *mut growpage_scheduler,
        stream: *mut c_void,
        demand: *mut *const growpage_measured_demand,
        count: *mut usize,
    ) -> growpage_status;
    pub fn growpage_step_result_init(
        result: *mut growpage_step_result,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_scheduler_complete(
        scheduler: *mut growpage_scheduler,
        result: *const growpage_step_result,
    ) -> growpage_status;
    pub fn growpage_scheduler_finished(
        scheduler: *const growpage_scheduler,
        finished: *mut *const growpage_finished,
        count: *mut usize,
        stride: *mut usize,
    ) -> growpage_status;
    pub fn growpage_scheduler_state(
        scheduler: *const growpage_scheduler,
        id: u64,
        state: *mut i32,
    ) -> growpage_status;
    pub fn growpage_scheduler_text(
        scheduler: *const growpage_scheduler,
        id: u64,
        tokens: *mut *const i32,
        count: *mut usize,
    ) -> growpage_status;
    pub fn growpage_scheduler_get_stats(
        scheduler: *const growpage_scheduler,
        stats: *mut growpage_stats,
    ) -> growpage_status;
    pub fn growpage_scheduler_check_invariants(
        scheduler: *const growpage_scheduler,
    ) -> growpage_status;
    pub fn growpage_scheduler_drain_decisions(
        scheduler: *mut growpage_scheduler,
        decisions: *mut growpage_decision,
        capacity: usize,
        count: *mut usize,
        dropped: *mut i64,
    ) -> growpage_status;
    pub fn growpage_decisions_to_jsonl(
        decisions: *const growpage_decision,
        count: usize,
        text: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> growpage_status;
    pub fn growpage_decision_log_hash(
        decisions: *const growpage_decision,
        count: usize,
        hash: *mut growpage_hash,
    ) -> growpage_status;
    pub fn growpage_prefix_root(
        key: *const growpage_key,
        root: *mut growpage_prefix_link,
    ) -> growpage_status;
    pub fn growpage_prefix_join_modality(
        parent: *const growpage_prefix_link,
        key: *const growpage_key,
        joined: *mut growpage_prefix_link,
    ) -> growpage_status;
    pub fn growpage_hash_page(
        parent: *const growpage_hash,
        tokens: *const i32,
        count: usize,
        hash: *mut growpage_hash,
    ) -> growpage_status;
    pub fn growpage_prefix_index_create(
        pages: i64,
        page_size: i32,
        hooks: *const growpage_hooks,
        index: *mut *mut growpage_prefix_index,
    ) -> growpage_status;
    pub fn growpage_prefix_index_destroy(index: *mut growpage_prefix_index) -> growpage_status;
    pub fn growpage_prefix_index_lookup(
        index: *const growpage_prefix_index,
        parent: *const growpage_prefix_link,
        tokens: *const i32,
        page: *mut i32,
        link: *mut growpage_prefix_link,
    ) -> growpage_status;
    pub fn growpage_prefix_index_publish(
        index: *mut growpage_prefix_index,
        page: i32,
        parent: *const growpage_prefix_link,
        tokens: *const i32,
        link: *mut growpage_prefix_link,
        first: *mut i32,
    ) -> growpage_status;
    pub fn growpage_prefix_index_withdraw(
        index: *mut growpage_prefix_index,
        page: i32,
        hash: *mut growpage_hash,
        last: *mut i32,
    ) -> growpage_status;
    pub fn growpage_prefix_index_lru_push(
        index: *mut growpage_prefix_index,
        page: i32,
    ) -> growpage_status;
    pub fn growpage_prefix_index_lru_remove(
        index: *mut growpage_prefix_index,
        page: i32,
    ) -> growpage_status;
    pub fn growpage_prefix_index_lru_oldest(
        index: *const growpage_prefix_index,
        page: *mut i32,
    ) -> growpage_status;
    pub fn growpage_kernel_init(
        kernel: *mut growpage_kernel,
        struct_size: usize,
    ) -> growpage_status;
    pub fn growpage_workspace_size(
        kernel: *const growpage_kernel,
        max_slots: i32,
        bytes: *mut usize,
    ) -> growpage_status;
    pub fn growpage_summary_get_sizes(
        kernel: *const growpage_kernel,
        options: *const growpage_summary_options,
        sizes: *mut growpage_summary_sizes,
    ) -> growpage_status;
    pub fn growpage_update_summaries(
        kernel: *const growpage_kernel,
        options: *const growpage_summary_options,
        state: *const growpage_summary_state,
        entries: *const growpage_summary_entry,
        count: usize,
        queries: *const growpage_tensor,
        first_layer: i32,
        layers: i32,
    ) -> growpage_status;
    pub fn growpage_query_init(query: *mut growpage_query, struct_size: usize) -> growpage_status;
    pub fn growpage_measure_demand(
        kernel: *const growpage_kernel,
        query: *const growpage_query,
        demand: *mut growpage_demand,
    ) -> growpage_status;
    pub fn growpage_score(
        kernel: *const growpage_kernel,
        query: *const growpage_query,
        old_slots: i32,
        scores: *mut f32,
        stride: i64,
        demand: *mut growpage_demand,
    ) -> growpage_status;
    pub fn growpage_select(
        kernel: *const growpage_kernel,
        retention: *const growpage_retention_options,
        scores: *const f32,
        stride: i64,
        marks: *const u8,
        protected_slots: i32,
        keep: i32,
        bits: *mut u64,
        words: i64,
        page_kept: *mut i32,
    ) -> growpage_status;
    pub fn growpage_plan_compaction(
        marks: *const u8,
        page_kept: *const i32,
        pages: usize,
        victims: i32,
        strategy: i32,
        plan: *mut growpage_compaction_plan,
    ) -> growpage_status;
    pub fn growpage_compact(
        kernel: *const growpage_kernel,
        marks: *const u8,
        plan: *const growpage_compaction_plan,
        bits: *const u64,
        words: i64,
        scores: *mut f32,
        stride: i64,
    ) -> growpage_status;
}
