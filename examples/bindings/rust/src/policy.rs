// SPDX-License-Identifier: Apache-2.0
//! What is decided at a capacity boundary.

use crate::call::{call, call_back, in_call_back, initialised, sized, text};
use crate::enums::Decision;
use crate::error::{Error, Result};
use crate::ffi::*;
use crate::log::{Hooks, Log};
use crate::options::RetentionOptions;
use std::ffi::CString;
use std::os::raw::c_void;
use std::ptr;
use std::rc::Rc;

impl growpage_demand {
    /// Mean short − mean long (paper, eq. 5): above 0 attention is widening.
    pub fn delta(&self) -> f64 {
        // SAFETY: a pointer to a whole struct.
        unsafe { growpage_demand_delta(self) }
    }
}

impl growpage_boundary {
    /// What an engine with a scheduler of its own gives to [`Policy::decide`]: all zero.
    pub fn new() -> growpage_boundary {
        // SAFETY: a struct that begins with struct_size.
        unsafe { sized() }
    }
}

impl Default for growpage_boundary {
    fn default() -> Self {
        Self::new()
    }
}

impl growpage_policy_info {
    /// "growpage", …
    pub fn name(&self) -> &'static str {
        // SAFETY: static, by the C interface.
        unsafe { text(self.name) }
    }
}

/// A value of a policy's parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter {
    /// A real number.
    Double(f64),
    /// An integer; a seed has the same bits.
    Int(i64),
}
impl From<f64> for Parameter {
    fn from(value: f64) -> Parameter {
        Parameter::Double(value)
    }
}
impl From<i32> for Parameter {
    fn from(value: i32) -> Parameter {
        Parameter::Int(value.into())
    }
}
impl From<i64> for Parameter {
    fn from(value: i64) -> Parameter {
        Parameter::Int(value)
    }
}

type Decide = Box<dyn Fn(&growpage_boundary) -> Decision>;

/// Call-backs of a policy: kept by it and by every scheduler made with it.
pub(crate) struct CallBacks {
    decide: Option<Decide>,
    hooks: Hooks,
}

/// "full", "fixed", "zipage", "growpage", "random", "inverse", "shrink", or the engine's closure.
/// A scheduler takes a copy, so later changes do not reach it.
pub struct Policy {
    pub(crate) handle: *mut growpage_policy,
    pub(crate) call_backs: Rc<CallBacks>,
}

impl Policy {
    /// A built-in policy with its defaults.
    pub fn new(name: &str, log: Option<&Log>) -> Result<Policy> {
        let name = c_string("name", name)?;
        let call_backs = Rc::new(CallBacks { decide: None, hooks: Hooks::new(log) });
        let mut handle = ptr::null_mut();
        // SAFETY: the hooks live as long as the handle.
        call(|| unsafe {
            growpage_policy_create(name.as_ptr(), call_backs.hooks.pointer(), &mut handle)
        })?;
        Ok(Policy { handle, call_backs })
    }

    /// The engine's own; deterministic in the boundary, and it must not call growpage. When it
    /// panics, the call that asked it panics the same way; the decision counts as Grow.
    pub fn user(
        needs_demand: bool,
        decide: impl Fn(&growpage_boundary) -> Decision + 'static,
        log: Option<&Log>,
    ) -> Result<Policy> {
        let decide: Decide = Box::new(decide);
        let call_backs = Rc::new(CallBacks { decide: Some(decide), hooks: Hooks::new(log) });
        let context = Rc::as_ptr(&call_backs) as *mut c_void;
        let mut handle = ptr::null_mut();
        // SAFETY: the context lives as long as this handle and every scheduler made with it.
        call(|| unsafe {
            let hooks = call_backs.hooks.pointer();
            growpage_policy_create_user(Some(run), context, needs_demand.into(), hooks, &mut handle)
        })?;
        Ok(Policy { handle, call_backs })
    }

    /// Sets a parameter by name; those of retention are "retention.recent", ….
    pub fn set(&mut self, name: &str, value: impl Into<Parameter>) -> Result<()> {
        let name = c_string("name", name)?;
        // SAFETY: a C string.
        match value.into() {
            Parameter::Double(value) => {
                call(|| unsafe { growpage_policy_set_double(self.handle, name.as_ptr(), value) })
            }
            Parameter::Int(value) => {
                call(|| unsafe { growpage_policy_set_int(self.handle, name.as_ptr(), value) })
            }
        }
    }

    /// All parameters with their values.
    pub fn parameters(&self) -> Result<Vec<(&'static str, Parameter)>> {
        let mut all = Vec::new();
        // SAFETY: pointers to locals; names are static.
        unsafe {
            let mut parameter: growpage_parameter = sized();
            while growpage_policy_get_parameter(self.handle, all.len(), &mut parameter)
                == GROWPAGE_OK
            {
                let (mut double, mut int) = (0.0, 0);
                let value = if parameter.kind == GROWPAGE_PARAMETER_INT {
                    call(|| growpage_policy_get_int(self.handle, parameter.name, &mut int))?;
                    Parameter::Int(int)
                } else {
                    call(|| growpage_policy_get_double(self.handle, parameter.name, &mut double))?;
                    Parameter::Double(double)
                };
                all.push((text(parameter.name), value));
            }
        }
        Ok(all)
    }

    /// Retention, to be given to the cache too. "full" has the defaults.
    pub fn retention(&self) -> Result<RetentionOptions> {
        // SAFETY: the right init; pointers to locals.
        let mut c = unsafe { initialised(growpage_retention_options_init) };
        call(|| unsafe { growpage_policy_get_retention(self.handle, &mut c) })?;
        Ok(RetentionOptions::from_c(&c))
    }

    /// Sets all of retention.
    pub fn set_retention(&mut self, options: &RetentionOptions) -> Result<()> {
        // SAFETY: pointers to temporaries.
        call(|| unsafe { growpage_policy_set_retention(self.handle, &options.to_c()) })
    }

    /// What it needs and may do with pages of `page_size` tokens.
    pub fn info(&self, page_size: i32) -> Result<growpage_policy_info> {
        // SAFETY: a sized struct.
        let mut info = unsafe { sized() };
        call(|| unsafe { growpage_policy_get_info(self.handle, page_size, &mut info) })?;
        Ok(info)
    }

    /// The first parameter out of range, as an error.
    pub fn validate(&self, page_size: i32) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_policy_validate(self.handle, page_size) })
    }

    /// The decision itself, for engines with a scheduler of their own.
    pub fn decide(&mut self, boundary: &growpage_boundary) -> Result<Decision> {
        let mut decision = 0;
        let whole = growpage_boundary {
            struct_size: std::mem::size_of::<growpage_boundary>(),
            ..*boundary
        };
        // SAFETY: pointers to locals.
        call(|| unsafe { growpage_policy_decide(self.handle, &whole, &mut decision) })?;
        Ok(Decision::try_from(decision).unwrap_or(Decision::Grow))
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        // Inside a call-back it is leaked: the library must not be called there.
        if !in_call_back() {
            // SAFETY: the handle is ours and not used again.
            unsafe { growpage_policy_destroy(self.handle) };
        }
    }
}

fn c_string(argument: &str, value: &str) -> Result<CString> {
    CString::new(value).map_err(|_| Error::invalid(argument, "a text with NUL", "no NUL"))
}

unsafe extern "C" fn run(context: *mut c_void, boundary: *const growpage_boundary) -> i32 {
    call_back(GROWPAGE_GROW, || {
        // SAFETY: the context is the CallBacks of a living policy or scheduler.
        let (call_backs, boundary) = unsafe { (&*context.cast::<CallBacks>(), &*boundary) };
        call_backs.decide.as_ref().map_or(GROWPAGE_GROW, |decide| decide(boundary) as i32)
    })
}
