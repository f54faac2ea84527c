// SPDX-License-Identifier: Apache-2.0
//! What the library refuses with.

use crate::ffi::*;
use std::fmt;

/// Why a call was refused; texts are empty where a status has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// "CacheShape::kv_heads"
    pub argument: String,
    /// "3"
    pub value: String,
    /// "a divisor of query_heads (2)"
    pub allowed: String,
    /// All of it in one line.
    pub message: String,
}

/// One variant a status. Those without a [`Detail`] are retryable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No free and no evictable page now.
    OutOfPages,
    /// Every sequence slot is taken.
    OutOfSequences,
    /// Every query-summary slot is taken.
    OutOfSlots,
    /// The sequence's pages are full: a capacity boundary.
    AtCapacity,
    /// Every fence is open.
    OutOfFences,
    /// Swap space is full.
    OutOfHostPages,
    /// The sequence is under compaction or swap.
    Busy,
    /// The detail says which argument, its value, what is allowed.
    InvalidArgument(Box<Detail>),
    /// The id's object is gone or never was.
    StaleId(Box<Detail>),
    /// Rollback across a compaction, whose evicted rows are gone.
    BehindCompaction(Box<Detail>),
    /// Can never fit, however long it waits.
    RequestTooLarge(Box<Detail>),
    /// Valid, but not offered by this build or backend.
    Unsupported(Box<Detail>),
    /// A call out of order.
    ProtocolError(Box<Detail>),
    /// Host memory.
    OutOfMemory(Box<Detail>),
    /// The device or its driver refused a call.
    Device(Box<Detail>),
    /// A defect of the library, or a status that this crate does not know.
    Internal(Box<Detail>),
}

/// Of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Nothing is wrong: try again when something was released or a fence has completed.
    pub fn is_retryable(&self) -> bool {
        self.detail().is_none()
    }

    /// Why, for errors that are not retryable.
    pub fn detail(&self) -> Option<&Detail> {
        use Error::*;
        match self {
            InvalidArgument(d) | StaleId(d) | BehindCompaction(d) | RequestTooLarge(d)
            | Unsupported(d) | ProtocolError(d) | OutOfMemory(d) | Device(d) | Internal(d) => Some(d),
            _ => None,
        }
    }

    pub(crate) fn invalid(argument: &str, value: impl fmt::Display, allowed: &str) -> Error {
        let value = value.to_string();
        let message = format!("invalid_argument: {argument} is {value}; allowed: {allowed}");
        Error::InvalidArgument(Box::new(Detail {
            argument: argument.to_owned(),
            value,
            allowed: allowed.to_owned(),
            message,
        }))
    }

    pub(crate) fn new(status: growpage_status, detail: impl FnOnce() -> Detail) -> Error {
        let detail = || Box::new(detail());
        match status {
            GROWPAGE_OUT_OF_PAGES => Error::OutOfPages,
            GROWPAGE_OUT_OF_SEQUENCES => Error::OutOfSequences,
            GROWPAGE_OUT_OF_SLOTS => Error::OutOfSlots,
            GROWPAGE_AT_CAPACITY => Error::AtCapacity,
            GROWPAGE_OUT_OF_FENCES => Error::OutOfFences,
            GROWPAGE_OUT_OF_HOST_PAGES => Error::OutOfHostPages,
            GROWPAGE_BUSY => Error::Busy,
            GROWPAGE_INVALID_ARGUMENT => Error::InvalidArgument(detail()),
            GROWPAGE_STALE_ID => Error::StaleId(detail()),
            GROWPAGE_BEHIND_COMPACTION => Error::BehindCompaction(detail()),
            GROWPAGE_REQUEST_TOO_LARGE => Error::RequestTooLarge(detail()),
            GROWPAGE_UNSUPPORTED => Error::Unsupported(detail()),
            GROWPAGE_PROTOCOL_ERROR => Error::ProtocolError(detail()),
            GROWPAGE_OUT_OF_MEMORY => Error::OutOfMemory(detail()),
            GROWPAGE_DEVICE_ERROR => Error::Device(detail()),
            _ => Error::Internal(detail()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::OutOfPages => "out of pages",
            Error::OutOfSequences => "out of sequences",
            Error::OutOfSlots => "out of slots",
            Error::AtCapacity => "at capacity",
            Error::OutOfFences => "out of fences",
            Error::OutOfHostPages => "out of host pages",
            Error::Busy => "busy",
            other => other.detail().map_or("", |detail| &detail.message),
        })
    }
}

impl std::error::Error for Error {}
