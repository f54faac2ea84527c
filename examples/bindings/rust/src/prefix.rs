// SPDX-License-Identifier: Apache-2.0
//! Prefix hashes and the prefix index, for routers and engines with a page pool of their own.

use crate::call::{call, in_call_back, initialised, pointer};
use crate::error::{Error, Result};
use crate::ffi::*;
use crate::log::{Hooks, Log};
use std::fmt;
use std::ptr;

pub use crate::ffi::{growpage_hash as Hash, growpage_prefix_link as PrefixLink};

impl PartialEq for Hash {
    fn eq(&self, other: &Hash) -> bool {
        (self.low, self.high) == (other.low, other.high)
    }
}
impl Eq for Hash {}

/// 32 hexadecimal digits.
impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

/// What besides the tokens decides the content of a page. Empty = absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key<'a> {
    /// Tenant or cache salt.
    pub salt: &'a [u8],
    /// Adapter id.
    pub lora: &'a [u8],
    /// Digest of images, audio, …
    pub modality: &'a [u8],
    /// First position the modality affects.
    pub modality_from: i64,
}

impl Key<'_> {
    pub(crate) fn to_c(self) -> growpage_key {
        // SAFETY: the right init.
        let mut c = unsafe { initialised(growpage_key_init) };
        c.salt = pointer(self.salt).cast();
        c.salt_size = self.salt.len();
        c.lora = pointer(self.lora).cast();
        c.lora_size = self.lora.len();
        c.modality = pointer(self.modality).cast();
        c.modality_size = self.modality.len();
        c.modality_from = self.modality_from;
        c
    }
}

const NO_HASH: Hash = Hash { low: 0, high: 0 };
const NO_LINK: PrefixLink = PrefixLink { hash: NO_HASH, id: 0 };

/// Where the chains of `key` begin (salt and LoRA).
pub fn prefix_root(key: Key) -> Result<PrefixLink> {
    let mut link = NO_LINK;
    // SAFETY: pointers to locals.
    call(|| unsafe { growpage_prefix_root(&key.to_c(), &mut link) })?;
    Ok(link)
}

/// The link from which the first page touched by the key's modality hangs.
pub fn join_modality(parent: &PrefixLink, key: Key) -> Result<PrefixLink> {
    let mut link = NO_LINK;
    // SAFETY: pointers to locals.
    call(|| unsafe { growpage_prefix_join_modality(parent, &key.to_c(), &mut link) })?;
    Ok(link)
}

/// The chained hash of a full page.
pub fn hash_page(parent: &Hash, tokens: &[i32]) -> Result<Hash> {
    let mut hash = NO_HASH;
    // SAFETY: pointers to locals and a slice with its length.
    call(|| unsafe { growpage_hash_page(parent, pointer(tokens), tokens.len(), &mut hash) })?;
    Ok(hash)
}

/// Which pages hold which prefix, and the order in which unreferenced ones are given up.
pub struct PrefixIndex {
    handle: *mut growpage_prefix_index,
    page_size: usize,
    _hooks: Hooks,
}

impl PrefixIndex {
    /// For pages 0 … pages − 1 of `page_size` tokens.
    pub fn new(pages: i64, page_size: i32, log: Option<&Log>) -> Result<PrefixIndex> {
        let hooks = Hooks::new(log);
        let mut handle = ptr::null_mut();
        // SAFETY: the hooks live as long as the handle.
        call(|| unsafe {
            growpage_prefix_index_create(pages, page_size, hooks.pointer(), &mut handle)
        })?;
        Ok(PrefixIndex { handle, page_size: page_size as usize, _hooks: hooks })
    }

    fn page(&self, tokens: &[i32]) -> Result<*const i32> {
        if tokens.len() == self.page_size {
            return Ok(tokens.as_ptr());
        }
        Err(Error::invalid("tokens", tokens.len(), &format!("{} tokens", self.page_size)))
    }

    /// A published page with `tokens` `[page_size]` below `parent`, and its link.
    pub fn lookup(&self, parent: &PrefixLink, tokens: &[i32]) -> Result<Option<(i32, PrefixLink)>> {
        let tokens = self.page(tokens)?;
        let (mut page, mut link) = (-1, NO_LINK);
        // SAFETY: the length was checked.
        call(|| unsafe {
            growpage_prefix_index_lookup(self.handle, parent, tokens, &mut page, &mut link)
        })?;
        Ok((page >= 0).then_some((page, link)))
    }

    /// `page` holds `tokens` `[page_size]` below `parent` now; true when no other page had this
    /// hash (a "stored" event is due).
    pub fn publish(
        &mut self,
        page: i32,
        parent: &PrefixLink,
        tokens: &[i32],
    ) -> Result<(PrefixLink, bool)> {
        let tokens = self.page(tokens)?;
        let (mut link, mut first) = (NO_LINK, 0);
        // SAFETY: the length was checked.
        call(|| unsafe {
            growpage_prefix_index_publish(self.handle, page, parent, tokens, &mut link, &mut first)
        })?;
        Ok((link, first != 0))
    }

    /// Forgets a published page; true when no other has its hash ("removed" is due).
    pub fn withdraw(&mut self, page: i32) -> Result<(Hash, bool)> {
        let (mut hash, mut last) = (NO_HASH, 0);
        // SAFETY: pointers to locals.
        call(|| unsafe {
            growpage_prefix_index_withdraw(self.handle, page, &mut hash, &mut last)
        })?;
        Ok((hash, last != 0))
    }

    /// A published page nobody reads goes to the newest end of the eviction order.
    pub fn lru_push(&mut self, page: i32) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_prefix_index_lru_push(self.handle, page) })
    }

    /// Out of the eviction order; nothing happens when it is not there.
    pub fn lru_remove(&mut self, page: i32) -> Result<()> {
        // SAFETY: a living handle.
        call(|| unsafe { growpage_prefix_index_lru_remove(self.handle, page) })
    }

    /// The page to give up next.
    pub fn lru_oldest(&self) -> Result<Option<i32>> {
        let mut page = -1;
        // SAFETY: pointers to locals.
        call(|| unsafe { growpage_prefix_index_lru_oldest(self.handle, &mut page) })?;
        Ok((page >= 0).then_some(page))
    }
}

impl Drop for PrefixIndex {
    fn drop(&mut self) {
        // Inside a call-back it is leaked: the library must not be called there.
        if !in_call_back() {
            // SAFETY: the handle is ours and not used again.
            unsafe { growpage_prefix_index_destroy(self.handle) };
        }
    }
}
