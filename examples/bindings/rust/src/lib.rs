// SPDX-License-Identifier: Apache-2.0
//! growpage: a paged KV cache that grows or compacts by measured attention demand.
//!
//! A safe layer over the C ABI; names, units and rules are those of `growpage.h`. Statuses are
//! [`Error`]s, handles are dropped, views live as long as the library keeps them. Objects stay on
//! the thread that made them: the library wants one call at a time, and so calls take `&self`. An
//! [`Executor`] lends the CPU kernels more threads.
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]

mod cache;
mod cache_compaction;
mod cache_kernels;
mod call;
mod decisions;
mod enums;
mod error;
mod executor;
pub mod ffi;
mod kernels;
mod log;
mod options;
mod policy;
mod prefix;
mod rows;
mod scheduler;
mod step;
mod tensor;

pub use cache::{Admitted, Cache, CacheOptions, Sequence};
pub use cache_compaction::plan_compaction;
pub use decisions::{decision_log_hash, decisions_to_jsonl};
pub use enums::*;
pub use error::{Detail, Error, Result};
pub use executor::{Executor, Threads};
pub use kernels::{Kernels, KernelsOptions, Query, Scores, Selection, Summaries, Table};
pub use log::{Log, LogLevel};
pub use options::*;
pub use policy::{Parameter, Policy};
pub use prefix::{hash_page, join_modality, prefix_root, Hash, Key, PrefixIndex, PrefixLink};
pub use rows::{Rows, RowsIter};
pub use scheduler::{Request, Scheduler};
pub use step::{Plan, Step, StepResult};
pub use tensor::{Bf16, Element, Tensor, F16};

pub use ffi::{
    growpage_boundary as Boundary, growpage_cache_info as CacheInfo,
    growpage_compaction as Compaction, growpage_compaction_plan as CompactionPlan,
    growpage_decision as DecisionRecord, growpage_decode as Decode, growpage_demand as Demand,
    growpage_demand_request as DemandRequest, growpage_finished as Finished,
    growpage_kv_event as KvEvent, growpage_measured_demand as MeasuredDemand,
    growpage_page_copy as PageCopy, growpage_page_transfer as PageTransfer,
    growpage_policy_info as PolicyInfo, growpage_prefill as Prefill,
    growpage_sampled_token as SampledToken, growpage_stats as Stats,
    growpage_summary_entry as SummaryEntry, growpage_swap as Swap, growpage_ticket as Ticket,
};

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The library's version, "0.1.0".
pub fn version() -> &'static str {
    // SAFETY: a static string, never null.
    unsafe { call::text(ffi::growpage_version()) }
}
