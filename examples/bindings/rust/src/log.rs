// SPDX-License-Identifier: Apache-2.0
//! Log functions.

use crate::call::{call_back, initialised, text};
use crate::enums::enumeration;
use crate::ffi::*;
use std::os::raw::{c_char, c_void};
use std::rc::Rc;

enumeration! {
    /// How much is logged.
    LogLevel {
        /// Memory could not be had.
        Error = GROWPAGE_LOG_ERROR,
        /// A call was refused with an error; a call-back misbehaved.
        Warning = GROWPAGE_LOG_WARNING,
        /// Rare events: preemption, memory taken.
        Debug = GROWPAGE_LOG_DEBUG,
    }
}

/// A log function of an object. Runs inside the object's calls and must not call growpage.
#[derive(Clone)]
pub struct Log {
    level: LogLevel,
    function: Rc<dyn Fn(LogLevel, &str)>,
}

impl Log {
    /// `level` is the highest that is wanted.
    pub fn new(level: LogLevel, function: impl Fn(LogLevel, &str) + 'static) -> Log {
        Log { level, function: Rc::new(function) }
    }
}

/// growpage_hooks, and the function they call: to be kept as long as the handle.
pub(crate) struct Hooks {
    c: growpage_hooks,
    log: Option<Box<Log>>,
}

impl Hooks {
    pub fn new(log: Option<&Log>) -> Hooks {
        // SAFETY: the right init.
        let mut c = unsafe { initialised(growpage_hooks_init) };
        let log = log.map(|log| Box::new(log.clone()));
        if let Some(log) = &log {
            c.log = Some(run);
            c.log_context = &**log as *const Log as *mut c_void;
            c.log_level = log.level as i32;
        }
        Hooks { c, log }
    }

    /// Null when there is nothing to hook.
    pub fn pointer(&self) -> *const growpage_hooks {
        self.log.as_ref().map_or(std::ptr::null(), |_| &self.c)
    }
}

unsafe extern "C" fn run(context: *mut c_void, level: i32, message: *const c_char) {
    call_back((), || {
        // SAFETY: the context is the boxed Log of a living handle.
        let log = unsafe { &*context.cast::<Log>() };
        let level = LogLevel::try_from(level).unwrap_or(LogLevel::Debug);
        (log.function)(level, unsafe { text(message) });
    });
}
