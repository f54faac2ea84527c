// SPDX-License-Identifier: Apache-2.0
//! Enumerations of the C header.

use crate::ffi::*;

macro_rules! enumeration {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$item_doc:meta])* $item:ident = $value:ident,)+
    })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            #[repr(i32)]
            pub enum $name { $($(#[$item_doc])* $item = $value,)+ }

            impl TryFrom<i32> for $name {
                type Error = i32;
                fn try_from(value: i32) -> Result<$name, i32> {
                    match value {
                        $($value => Ok($name::$item),)+
                        other => Err(other),
                    }
                }
            }

            impl crate::options::Field for $name {
                type C = i32;
                fn to_c(self) -> i32 { self as i32 }
                fn from_c(value: i32) -> $name {
                    // A default of a newer library that has no name here.
                    $name::try_from(value).unwrap_or([$($name::$item),+][0])
                }
            }
        )+
    };
}
pub(crate) use enumeration;

enumeration! {
    /// Who runs the kernels.
    Backend {
        /// The engine; the cache only keeps the books.
        None = GROWPAGE_BACKEND_NONE,
        /// The library, on the CPU.
        Cpu = GROWPAGE_BACKEND_CPU,
        /// The library, on a GPU.
        Cuda = GROWPAGE_BACKEND_CUDA,
    }
    /// Element types of KV memory.
    DType {
        /// 32 bits.
        F32 = GROWPAGE_F32,
        /// IEEE half.
        F16 = GROWPAGE_F16,
        /// bfloat16.
        Bf16 = GROWPAGE_BF16,
    }
    /// Order of head and token in memory the library allocates.
    Layout {
        /// Head, token, dim.
        Hnd = GROWPAGE_LAYOUT_HND,
        /// Token, head, dim.
        Nhd = GROWPAGE_LAYOUT_NHD,
    }
    /// CPU kernels.
    Isa {
        /// The best of the machine.
        Automatic = GROWPAGE_ISA_AUTOMATIC,
        /// Equal bits on every machine.
        Scalar = GROWPAGE_ISA_SCALAR,
        /// Vector instructions, or refused.
        Simd = GROWPAGE_ISA_SIMD,
    }
    /// Of query summaries.
    Storage {
        /// 32 bits.
        F32 = GROWPAGE_STORAGE_F32,
        /// 16 bits, stochastically rounded.
        F16Stochastic = GROWPAGE_STORAGE_F16_STOCHASTIC,
    }
    /// Which dimensions rotate together.
    RopePairing {
        /// i and i + rotary_dim / 2.
        HalfSplit = GROWPAGE_ROPE_HALF_SPLIT,
        /// 2i and 2i + 1.
        Interleaved = GROWPAGE_ROPE_INTERLEAVED,
    }
    /// What demand is measured by.
    Metric {
        /// Size of the working set (paper, eq. 4).
        TopP = GROWPAGE_METRIC_TOP_P,
        /// Entropy (ablation).
        Entropy = GROWPAGE_METRIC_ENTROPY,
    }
    /// How the query heads of a KV head are joined for demand.
    Group {
        /// Mean of the distributions.
        Mean = GROWPAGE_GROUP_MEAN,
        /// A working set each.
        PerQueryHead = GROWPAGE_GROUP_PER_QUERY_HEAD,
    }
    /// What tokens are ranked by.
    Score {
        /// GrowPage's query summaries.
        Summaries = GROWPAGE_SCORE_SUMMARIES,
        /// Zipage's window of queries.
        Window = GROWPAGE_SCORE_WINDOW,
    }
    /// How kept rows are brought together.
    Strategy {
        /// Rows of the victim page move into holes.
        FillHoles = GROWPAGE_FILL_HOLES,
        /// All rows keep their order.
        InOrder = GROWPAGE_IN_ORDER,
    }
    /// What a compaction does with pages that others read too.
    Shared {
        /// They keep all their rows.
        Keep = GROWPAGE_SHARED_KEEP,
        /// They are copied first.
        Copy = GROWPAGE_SHARED_COPY,
    }
    /// How a preempted request comes back.
    Preemption {
        /// Its text is computed again.
        Recompute = GROWPAGE_PREEMPT_RECOMPUTE,
        /// From host memory.
        Swap = GROWPAGE_PREEMPT_SWAP,
    }
    /// Answer of a policy at a capacity boundary.
    Decision {
        /// One more page.
        Grow = GROWPAGE_GROW,
        /// Compress & Hold.
        Compact = GROWPAGE_COMPACT,
        /// One page less.
        Shrink = GROWPAGE_SHRINK,
    }
    /// Kinds of entries of the decision log.
    DecisionKind {
        /// One more page.
        Grow = GROWPAGE_DECISION_GROW,
        /// Compress & Hold.
        Compact = GROWPAGE_DECISION_COMPACT,
        /// One page less.
        Shrink = GROWPAGE_DECISION_SHRINK,
        /// Growth was wanted, but no page was free: compacted.
        Fallback = GROWPAGE_DECISION_FALLBACK,
        /// Preempted to host memory.
        SwapOut = GROWPAGE_DECISION_SWAP_OUT,
        /// Preempted, to be computed again.
        Recompute = GROWPAGE_DECISION_RECOMPUTE,
    }
    /// Where a request is.
    RequestState {
        /// Not admitted yet, or preempted and to be recomputed.
        Waiting = GROWPAGE_WAITING,
        /// Its prompt is being computed.
        Prefilling = GROWPAGE_PREFILLING,
        /// In the decode batch.
        Decoding = GROWPAGE_DECODING,
        /// Out of the batch until its fence is done.
        Compacting = GROWPAGE_COMPACTING,
        /// On the way to host memory.
        SwappingOut = GROWPAGE_SWAPPING_OUT,
        /// In host memory.
        Swapped = GROWPAGE_SWAPPED,
        /// On the way back.
        SwappingIn = GROWPAGE_SWAPPING_IN,
    }
    /// Kinds of KV events.
    EventKind {
        /// A hash can be matched now.
        Stored = GROWPAGE_EVENT_STORED,
        /// The last page with a hash is gone.
        Removed = GROWPAGE_EVENT_REMOVED,
        /// All are.
        Cleared = GROWPAGE_EVENT_CLEARED,
    }
}

/// Bit of a page mark: no other table holds the page.
pub const PAGE_PRIVATE: u8 = GROWPAGE_PAGE_PRIVATE as u8;
/// Bit of a page mark: rows of the page are protected.
pub const PAGE_PROTECTED: u8 = GROWPAGE_PAGE_PROTECTED as u8;
