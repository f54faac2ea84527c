// SPDX-License-Identifier: Apache-2.0
//! Continuous batching over a cache under a policy.

use crate::cache::Cache;
use crate::call::{call, check, in_call_back, initialised, pointer, sized, status_of};
use crate::enums::RequestState;
use crate::error::Result;
use crate::ffi::*;
use crate::log::Hooks;
use crate::options::SchedulerOptions;
use crate::policy::{CallBacks, Policy};
use crate::prefix::Key;
use crate::rows::{slice, Rows};
use crate::step::Step;
use std::ptr;
use std::rc::Rc;

/// What [`Scheduler::submit`] queues.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The engine's own name; in plans, logs and policy seeds.
    pub tag: u64,
    /// At least one token; copied.
    pub prompt: &'a [i32],
    /// At least 1.
    pub max_new_tokens: i64,
    /// Lower runs earlier.
    pub priority: i32,
    /// Copied.
    pub key: Key<'a>,
}

/// schedule and complete alternate; submit and abort come between steps.
pub struct Scheduler<'c, 'm> {
    pub(crate) handle: *mut growpage_scheduler,
    pub(crate) open: Option<growpage_plan>,
    cache: &'c Cache<'m>,
    _hooks: Hooks,
    _call_backs: Rc<CallBacks>,
}

impl<'c, 'm> Scheduler<'c, 'm> {
    /// Over `cache`, under a copy of `policy`.
    pub fn new(
        cache: &'c Cache<'m>,
        policy: &Policy,
        options: &SchedulerOptions,
    ) -> Result<Scheduler<'c, 'm>> {
        let hooks = Hooks::new(options.log.as_ref());
        let mut handle = ptr::null_mut();
        // SAFETY: cache, hooks and the policy's call-backs outlive the handle.
        call(|| unsafe {
            let options = options.to_c();
            growpage_scheduler_create(
                cache.handle,
                policy.handle,
                &options,
                hooks.pointer(),
                &mut handle,
            )
        })?;
        let call_backs = policy.call_backs.clone();
        Ok(Scheduler { handle, open: None, cache, _hooks: hooks, _call_backs: call_backs })
    }

    /// The cache it plans for.
    pub fn cache(&self) -> &'c Cache<'m> {
        self.cache
    }

    /// Queues a request: its id.
    pub fn submit(&mut self, request: &Request) -> Result<u64> {
        // SAFETY: the right init; a slice with its length.
        let mut c = unsafe { initialised(growpage_request_init) };
        let key = request.key.to_c();
        c.tag = request.tag;
        (c.prompt, c.prompt_tokens) = (pointer(request.prompt), request.prompt.len());
        c.max_new_tokens = request.max_new_tokens;
        c.priority = request.priority;
        c.key = &key;
        let mut id = 0;
        call(|| unsafe { growpage_scheduler_submit(self.handle, &c, &mut id) })?;
        Ok(id)
    }

    /// Ends a request in any state; its pages and slot return.
    pub fn abort(&mut self, request: u64) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_scheduler_abort(self.handle, request) })
    }

    /// Decides the next step. When a policy's closure panics here, so does this; the step is open
    /// all the same (`open_step`).
    pub fn schedule(&mut self) -> Result<Step<'_>> {
        // SAFETY: a sized struct.
        let mut plan: growpage_plan = unsafe { sized() };
        let handle = self.handle;
        let status = status_of(|| unsafe { growpage_scheduler_schedule(handle, &mut plan) });
        if status == GROWPAGE_OK {
            self.open = Some(plan);
        }
        check(status)?;
        Ok(self.open_step().expect("a plan was just made"))
    }

    /// The step that was scheduled but not completed.
    pub fn open_step(&mut self) -> Option<Step<'_>> {
        Step::of(self)
    }

    /// Requests that ended in the last complete or by abort since.
    pub fn finished(&self) -> Result<Rows<'_, growpage_finished>> {
        let (mut first, mut count, mut stride) = (ptr::null(), 0, 0);
        // SAFETY: valid until the next complete or abort, which need this borrow to end.
        unsafe {
            call(|| growpage_scheduler_finished(self.handle, &mut first, &mut count, &mut stride))?;
            Ok(Rows::new(first, count, stride))
        }
    }

    /// Where a request is; StaleId when it is gone.
    pub fn state(&self, request: u64) -> Result<RequestState> {
        let mut state = 0;
        // SAFETY: pointers to locals.
        call(|| unsafe { growpage_scheduler_state(self.handle, request, &mut state) })?;
        Ok(RequestState::try_from(state).unwrap_or(RequestState::Waiting))
    }

    /// Prompt and generated tokens so far.
    pub fn text(&self, request: u64) -> Result<&[i32]> {
        let (mut tokens, mut count) = (ptr::null(), 0);
        // SAFETY: valid until the next complete or submit, which need this borrow to end.
        unsafe {
            call(|| growpage_scheduler_text(self.handle, request, &mut tokens, &mut count))?;
            Ok(slice(tokens, count))
        }
    }

    /// What was done since construction.
    pub fn stats(&self) -> Result<growpage_stats> {
        // SAFETY: a sized struct.
        let mut stats = unsafe { sized() };
        call(|| unsafe { growpage_scheduler_get_stats(self.handle, &mut stats) })?;
        Ok(stats)
    }

    /// Checks requests, slots and pages against the cache, O(everything), for debugging.
    pub fn check_invariants(&self) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_scheduler_check_invariants(self.handle) })
    }

    /// All waiting entries of the decision log, and how many were lost so far.
    pub fn drain_decisions(&mut self) -> Result<(Vec<growpage_decision>, i64)> {
        let (mut count, mut dropped) = (0, 0);
        // SAFETY: null only asks.
        call(|| unsafe {
            let none = ptr::null_mut();
            growpage_scheduler_drain_decisions(self.handle, none, 0, &mut count, &mut dropped)
        })?;
        // SAFETY: plain numbers.
        let mut decisions = vec![unsafe { std::mem::zeroed() }; count];
        if count > 0 {
            let first = decisions.as_mut_ptr();
            // SAFETY: as many as there is room for.
            call(|| unsafe {
                growpage_scheduler_drain_decisions(
                    self.handle,
                    first,
                    count,
                    &mut count,
                    &mut dropped,
                )
            })?;
        }
        Ok((decisions, dropped))
    }
}

impl Drop for Scheduler<'_, '_> {
    fn drop(&mut self) {
        // Inside a call-back it is leaked: the library must not be called there.
        if !in_call_back() {
            // SAFETY: the handle is ours and not used again.
            unsafe { growpage_scheduler_destroy(self.handle) };
        }
    }
}
