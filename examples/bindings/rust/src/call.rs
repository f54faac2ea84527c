// SPDX-License-Identifier: Apache-2.0
//! The one way into the library and, for call-backs, back.

use crate::error::{Detail, Error, Result};
use crate::ffi::*;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::os::raw::c_char;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

thread_local! {
    /// What a call-back of this thread panicked with; raised again when the call is back.
    static PENDING: RefCell<Option<Box<dyn Any + Send>>> = const { RefCell::new(None) };
    static IN_CALL_BACK: Cell<bool> = const { Cell::new(false) };
}

/// # Safety
/// Null, or a C string that lives for `'a`.
pub(crate) unsafe fn text<'a>(string: *const c_char) -> &'a str {
    if string.is_null() {
        return "";
    }
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(string) }.to_str().unwrap_or("(not UTF-8)")
}

/// Whether a call-back is running, which must not call the library.
pub(crate) fn in_call_back() -> bool {
    IN_CALL_BACK.with(Cell::get)
}

/// Runs a call of the library; panics with what a call-back panicked with.
pub(crate) fn call(function: impl FnOnce() -> growpage_status) -> Result<()> {
    check(status_of(function))
}

/// The same in two steps, for calls that leave something behind even when a call-back panics.
pub(crate) fn status_of(function: impl FnOnce() -> growpage_status) -> growpage_status {
    assert!(!in_call_back(), "a call-back must not call growpage");
    function()
}

pub(crate) fn check(status: growpage_status) -> Result<()> {
    if let Some(panic) = PENDING.with(|pending| pending.borrow_mut().take()) {
        resume_unwind(panic);
    }
    if status == GROWPAGE_OK {
        return Ok(());
    }
    Err(Error::new(status, || {
        // SAFETY: zeros are a growpage_error; the strings are valid until the next call.
        unsafe {
            let mut error: growpage_error = std::mem::zeroed();
            growpage_last_error(&mut error, std::mem::size_of::<growpage_error>());
            Detail {
                argument: text(error.argument).to_owned(),
                value: text(error.value).to_owned(),
                allowed: text(error.allowed).to_owned(),
                message: text(error.message).to_owned(),
            }
        }
    }))
}

/// Runs the user's code inside a call-back: panics stop here and are kept for `check`.
pub(crate) fn call_back<T>(fallback: T, function: impl FnOnce() -> T) -> T {
    let outer = IN_CALL_BACK.with(|flag| flag.replace(true));
    let result = catch_unwind(AssertUnwindSafe(function));
    IN_CALL_BACK.with(|flag| flag.set(outer));
    result.unwrap_or_else(|panic| {
        PENDING.with(|pending| {
            pending.borrow_mut().get_or_insert(panic);
        });
        fallback
    })
}

/// A struct for the library to fill: zeros but for struct_size, its first field.
///
/// # Safety
/// `T` is a C struct of this interface that begins with struct_size.
pub(crate) unsafe fn sized<T>() -> T {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: promised by the caller; zeros are a value of every such struct.
    unsafe {
        value.as_mut_ptr().cast::<usize>().write(std::mem::size_of::<T>());
        value.assume_init()
    }
}

/// A struct with the library's defaults.
///
/// # Safety
/// `init` is the growpage_X_init of `T`.
pub(crate) unsafe fn initialised<T>(
    init: unsafe extern "C" fn(*mut T, usize) -> growpage_status,
) -> T {
    // SAFETY: promised by the caller.
    unsafe {
        let mut value = sized::<T>();
        init(&mut value, std::mem::size_of::<T>());
        value
    }
}

/// Pointer of a slice; null when empty.
pub(crate) fn pointer<T>(slice: &[T]) -> *const T {
    if slice.is_empty() {
        std::ptr::null()
    } else {
        slice.as_ptr()
    }
}

/// The same of a slice to be written.
pub(crate) fn pointer_mut<T>(slice: &mut [T]) -> *mut T {
    if slice.is_empty() {
        std::ptr::null_mut()
    } else {
        slice.as_mut_ptr()
    }
}
