// SPDX-License-Identifier: Apache-2.0
//! Options of the C header under their own names; defaults are the library's.

use crate::enums::*;
use crate::ffi::*;

/// How a field looks in C.
pub(crate) trait Field: Copy {
    type C;
    fn to_c(self) -> Self::C;
    fn from_c(value: Self::C) -> Self;
}

macro_rules! plain {
    ($($kind:ty)+) => {
        $(impl Field for $kind {
            type C = $kind;
            fn to_c(self) -> $kind { self }
            fn from_c(value: $kind) -> $kind { value }
        })+
    };
}
plain!(i32 i64 u64 f32 f64);

impl Field for bool {
    type C = i32;
    fn to_c(self) -> i32 {
        self.into()
    }
    fn from_c(value: i32) -> bool {
        value != 0
    }
}

/// A struct of plain fields with the defaults of the library; further fields, which the C struct
/// has as pointers, begin as their `Default`.
macro_rules! options {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)?: $c:ident, $init:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty,)+
    } $({ $($(#[$more_doc:meta])* $more:ident: $more_kind:ty,)+ })?) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name $(<$life>)? {
            $($(#[$field_doc])* pub $field: $kind,)+
            $($($(#[$more_doc])* pub $more: $more_kind,)+)?
        }

        impl $(<$life>)? Default for $name $(<$life>)? {
            fn default() -> Self {
                // SAFETY: the right init.
                Self::from_c(&unsafe { crate::call::initialised(crate::ffi::$init) })
            }
        }

        impl $(<$life>)? $name $(<$life>)? {
            pub(crate) fn from_c(c: &crate::ffi::$c) -> Self {
                $name {
                    $($field: crate::options::Field::from_c(c.$field),)+
                    $($($more: Default::default(),)+)?
                }
            }

            /// The plain fields; pointers are null.
            pub(crate) fn to_c(&self) -> crate::ffi::$c {
                // SAFETY: the right init.
                let mut c = unsafe { crate::call::initialised(crate::ffi::$init) };
                $(c.$field = crate::options::Field::to_c(self.$field);)+
                c
            }
        }
    };
}
pub(crate) use options;

options! {
    /// The two smoothed query summaries of every running request (paper, section 3.2).
    SummaryOptions: growpage_summary_options, growpage_summary_options_init {
        /// Weight of the OLD value, 0.9; at least 0.
        beta_short: f32,
        /// 0 = 1 − 0.256 / page_size; else beta_short < beta_long < 1.
        beta_long: f32,
        /// Requests that can run at once, 512.
        slots: i32,
        /// Recent queries kept per slot, for window scoring.
        window: i32,
        /// Of the summaries.
        storage: Storage,
        /// Of stochastic rounding.
        seed: u64,
    }
}

options! {
    /// Which tokens survive a compaction (paper, section 3.4; Zipage, section 3).
    RetentionOptions: growpage_retention_options, growpage_retention_options_init {
        /// What tokens are ranked by.
        score: Score,
        /// How kept rows are brought together.
        strategy: Strategy,
        /// Pages that others read too.
        shared: Shared,
        /// Last slots always kept, 16.
        recent: i32,
        /// Best of every page always kept, scaled by page_size / 256; 64.
        local_per_256: i32,
        /// First tokens always kept.
        sinks: i32,
        /// The prompt is always kept.
        protect_prompt: bool,
        /// Queries of window scoring.
        window: i32,
        /// 0 = off, else odd.
        max_pool: i32,
        /// 0 = off.
        global_decay: f32,
        /// 0 = off.
        redundancy_weight: f32,
        /// 0.4.
        redundancy_temperature: f32,
    }
}

options! {
    /// How attention demand is measured (paper, eq. 4 and 5).
    DemandOptions<'m>: growpage_demand_options, growpage_demand_options_init {
        /// Mass of the working set, 0 < p ≤ 1; 0.99.
        p: f32,
        /// What is measured.
        metric: Metric,
        /// How query heads are joined.
        group: Group,
    } {
        /// `[layer]` nonzero = counts; none = all.
        layer_mask: Option<&'m [u8]>,
    }
}

options! {
    /// The engine's rotary embedding; give inv_freq or both tables.
    Rope<'m>: growpage_rope, growpage_rope_init {
        /// Even, 0 … head_dim.
        rotary_dim: i32,
        /// Which dimensions rotate together.
        pairing: RopePairing,
        /// Positions in the tables.
        max_position: i64,
        /// Multiplies cos and sin.
        attention_scale: f32,
    } {
        /// `[rotary_dim / 2]`
        inv_freq: Option<&'m [f32]>,
        /// `[max_position, rotary_dim / 2]`
        cos_table: Option<&'m [f32]>,
        /// `[max_position, rotary_dim / 2]`
        sin_table: Option<&'m [f32]>,
    }
}

options! {
    /// Limits of a scheduler.
    SchedulerOptions: growpage_scheduler_options, growpage_scheduler_options_init {
        /// Prefill + decode tokens of one forward pass, 8192.
        max_batched_tokens: i64,
        /// 0 = the whole budget.
        max_prefill_chunk: i64,
        /// Requests in the batch, 512.
        max_running: i32,
        /// As SummaryOptions::slots of the cache, 512.
        summary_slots: i32,
        /// Swap needs host pages.
        preemption: Preemption,
        /// Demand is measured when at most this many slots remain.
        early_slots: i32,
        /// Of requests under compaction at once, 600.
        max_compacting_pages: i64,
        /// Steps after which a priority level is gained, 1024; 0 = off.
        aging_steps: i64,
        /// Decision-log entries kept.
        decision_capacity: i64,
    } {
        /// None: nothing is logged.
        log: Option<crate::Log>,
    }
}

/// Lengths that the library cannot check.
pub(crate) fn expect(name: &str, slice: Option<&[f32]>, length: i64) -> crate::Result<*const f32> {
    match slice {
        None => Ok(std::ptr::null()),
        Some(slice) if slice.len() as i64 == length => Ok(slice.as_ptr()),
        Some(slice) => Err(crate::Error::invalid(name, slice.len(), &format!("{length} elements"))),
    }
}

impl Rope<'_> {
    pub(crate) fn full_c(&self) -> crate::Result<growpage_rope> {
        let mut c = self.to_c();
        let half = i64::from(self.rotary_dim) / 2;
        let table = self.max_position.checked_mul(half).unwrap_or(-1);
        c.inv_freq = expect("Rope::inv_freq", self.inv_freq, half)?;
        c.cos_table = expect("Rope::cos_table", self.cos_table, table)?;
        c.sin_table = expect("Rope::sin_table", self.sin_table, table)?;
        Ok(c)
    }
}

impl DemandOptions<'_> {
    pub(crate) fn full_c(&self, layers: i32) -> crate::Result<growpage_demand_options> {
        let mut c = self.to_c();
        if let Some(mask) = self.layer_mask {
            if mask.len() as i64 != i64::from(layers) {
                let allowed = format!("{layers} elements");
                return Err(crate::Error::invalid("layer_mask", mask.len(), &allowed));
            }
            c.layer_mask = mask.as_ptr();
        }
        Ok(c)
    }
}
