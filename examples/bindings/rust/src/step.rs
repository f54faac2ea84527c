// SPDX-License-Identifier: Apache-2.0
//! One step of a scheduler: its plan, and what is done with it.

use crate::call::{call, initialised, pointer};
use crate::error::Result;
use crate::ffi::*;
use crate::rows::{slice, Rows};
use crate::scheduler::Scheduler;
use std::ptr;

/// Views of the scheduler's memory, valid as long as the scheduler is borrowed for the step.
#[derive(Clone, Copy)]
pub struct Plan<'s> {
    /// Number of this step.
    pub step: i64,
    /// Prefill + decode tokens of the forward pass.
    pub batched_tokens: i64,
    /// Done first.
    pub swap_outs: Rows<'s, growpage_swap>,
    /// Second.
    pub swap_ins: Rows<'s, growpage_swap>,
    /// Page copies of swap_outs.
    pub transfers_out: Rows<'s, growpage_page_transfer>,
    /// Page copies of swap_ins.
    pub transfers_in: Rows<'s, growpage_page_transfer>,
    /// Third.
    pub copies: Rows<'s, growpage_page_copy>,
    /// Fourth; `Step::run_before_forward` does all four.
    pub compactions: Rows<'s, growpage_compaction>,
    /// Chunks of prompts, for the forward pass.
    pub prefills: Rows<'s, growpage_prefill>,
    /// Tokens, for the forward pass.
    pub decodes: Rows<'s, growpage_decode>,
    /// Measured after it by `Step::run_after_forward`.
    pub demand: Rows<'s, growpage_demand_request>,
    /// Request ids, for the engine's own bookkeeping.
    pub preempted: Rows<'s, u64>,
}

impl<'s> Plan<'s> {
    /// # Safety
    /// The plan's memory lives for `'s`.
    unsafe fn new(c: &growpage_plan) -> Plan<'s> {
        // SAFETY: promised by the caller.
        unsafe {
            Plan {
                step: c.step,
                batched_tokens: c.batched_tokens,
                swap_outs: Rows::new(c.swap_outs, c.swap_out_count, c.swap_out_stride),
                swap_ins: Rows::new(c.swap_ins, c.swap_in_count, c.swap_in_stride),
                transfers_out: Rows::new(
                    c.transfers_out,
                    c.transfer_out_count,
                    c.transfer_out_stride,
                ),
                transfers_in: Rows::new(c.transfers_in, c.transfer_in_count, c.transfer_in_stride),
                copies: Rows::new(c.copies, c.copy_count, c.copy_stride),
                compactions: Rows::new(c.compactions, c.compaction_count, c.compaction_stride),
                prefills: Rows::new(c.prefills, c.prefill_count, c.prefill_stride),
                decodes: Rows::new(c.decodes, c.decode_count, c.decode_stride),
                demand: Rows::new(c.demand, c.demand_count, c.demand_stride),
                preempted: Rows::new(c.preempted, c.preempted_count, c.preempted_stride),
            }
        }
    }
}

impl growpage_sampled_token {
    /// `stop`: end of text, the request finishes with this token.
    pub fn new(request: u64, token: i32, stop: bool) -> growpage_sampled_token {
        growpage_sampled_token { request, token, stop: stop.into(), reserved: [0; 3] }
    }
}

/// Results of a step, in any order.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepResult<'a> {
    /// One per decode and per last prefill chunk.
    pub tokens: &'a [growpage_sampled_token],
    /// One per demand entry of the plan.
    pub demand: &'a [growpage_measured_demand],
    /// Finished since the last complete.
    pub fences: &'a [u64],
    /// Planned requests the engine could not run: aborted, no token.
    pub failed: &'a [u64],
}

/// An open plan. To be completed; when it is dropped instead, `Scheduler::open_step` has it again.
pub struct Step<'s> {
    /// What to do.
    pub plan: Plan<'s>,
    scheduler: *mut growpage_scheduler,
    open: &'s mut Option<growpage_plan>,
}

impl<'s> Step<'s> {
    pub(crate) fn of<'m>(scheduler: &'s mut Scheduler<'_, 'm>) -> Option<Step<'s>> {
        // SAFETY: valid until the next schedule, which needs the scheduler's borrow to end.
        let plan = unsafe { Plan::new(scheduler.open.as_ref()?) };
        Some(Step { plan, scheduler: scheduler.handle, open: &mut scheduler.open })
    }

    /// Prompt and generated tokens so far.
    pub fn text(&self, request: u64) -> Result<&[i32]> {
        let (mut tokens, mut count) = (ptr::null(), 0);
        // SAFETY: valid until the next complete or submit, which need this borrow to end.
        unsafe {
            call(|| growpage_scheduler_text(self.scheduler, request, &mut tokens, &mut count))?;
            Ok(slice(tokens, count))
        }
    }

    /// Runs swaps, copies and compactions; the fences for [`StepResult`].
    pub fn run_before_forward(&mut self) -> Result<&'s [u64]> {
        let (mut fences, mut count) = (ptr::null(), 0);
        let stream = ptr::null_mut();
        // SAFETY: valid until the next schedule.
        unsafe {
            call(|| {
                growpage_scheduler_run_before_forward(
                    self.scheduler,
                    stream,
                    &mut fences,
                    &mut count,
                )
            })?;
            Ok(slice(fences, count))
        }
    }

    /// Measures the demand the plan asks for, after the forward pass has updated the summaries.
    pub fn run_after_forward(&mut self) -> Result<&'s [growpage_measured_demand]> {
        let (mut demand, mut count) = (ptr::null(), 0);
        let stream = ptr::null_mut();
        // SAFETY: valid until the next schedule.
        unsafe {
            call(|| {
                growpage_scheduler_run_after_forward(
                    self.scheduler,
                    stream,
                    &mut demand,
                    &mut count,
                )
            })?;
            Ok(slice(demand, count))
        }
    }

    /// Takes the results. On an error nothing has changed: correct them and try again with
    /// `Scheduler::open_step`.
    pub fn complete(self, result: &StepResult) -> Result<()> {
        // SAFETY: the right init; slices with their lengths.
        let mut c = unsafe { initialised(growpage_step_result_init) };
        (c.tokens, c.token_count) = (pointer(result.tokens), result.tokens.len());
        (c.demand, c.demand_count) = (pointer(result.demand), result.demand.len());
        (c.fences, c.fence_count) = (pointer(result.fences), result.fences.len());
        (c.failed, c.failed_count) = (pointer(result.failed), result.failed.len());
        call(|| {
            let status = unsafe { growpage_scheduler_complete(self.scheduler, &c) };
            if status == GROWPAGE_OK {
                *self.open = None;
            }
            status
        })
    }
}
