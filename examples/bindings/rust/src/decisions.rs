// SPDX-License-Identifier: Apache-2.0
//! The decision log as text and as one hash.

use crate::call::{call, pointer, pointer_mut};
use crate::error::Result;
use crate::ffi::*;
use crate::prefix::Hash;
use std::ptr;

/// One JSON object a line.
pub fn decisions_to_jsonl(decisions: &[growpage_decision]) -> Result<String> {
    let (first, count) = (pointer(decisions), decisions.len());
    let mut length = 0;
    // SAFETY: slices with their lengths.
    call(|| unsafe { growpage_decisions_to_jsonl(first, count, ptr::null_mut(), 0, &mut length) })?;
    let mut text = vec![0u8; length];
    if length > 0 {
        let memory = pointer_mut(&mut text).cast();
        // SAFETY: as above.
        call(|| unsafe { growpage_decisions_to_jsonl(first, count, memory, length, &mut length) })?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Hash of that text: equal logs, equal hashes, in every language.
pub fn decision_log_hash(decisions: &[growpage_decision]) -> Result<Hash> {
    let mut hash = Hash { low: 0, high: 0 };
    // SAFETY: a slice with its length.
    call(|| unsafe { growpage_decision_log_hash(pointer(decisions), decisions.len(), &mut hash) })?;
    Ok(hash)
}
