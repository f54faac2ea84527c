// SPDX-License-Identifier: Apache-2.0
//! Rows of the library's memory.

use std::marker::PhantomData;

/// A view of rows that may be longer in a newer library than here: indexed by stride, no copy.
pub struct Rows<'a, T> {
    first: *const u8,
    count: usize,
    stride: usize,
    lifetime: PhantomData<&'a [T]>,
}

impl<T> Clone for Rows<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Rows<'_, T> {}

impl<'a, T> Rows<'a, T> {
    /// # Safety
    /// `count` rows of `T` lie `stride` bytes apart from `first` on and live for `'a`.
    pub(crate) unsafe fn new(first: *const T, count: usize, stride: usize) -> Rows<'a, T> {
        Rows { first: first.cast(), count, stride, lifetime: PhantomData }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// No row.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Row `index`.
    pub fn get(&self, index: usize) -> Option<&'a T> {
        // SAFETY: within the rows promised to `new`.
        (index < self.count).then(|| unsafe { &*self.first.add(index * self.stride).cast::<T>() })
    }

    /// All rows in order.
    pub fn iter(self) -> RowsIter<'a, T> {
        RowsIter { rows: self, next: 0 }
    }
}

/// Iterator over [`Rows`].
pub struct RowsIter<'a, T> {
    rows: Rows<'a, T>,
    next: usize,
}

impl<'a, T> Iterator for RowsIter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        let row = self.rows.get(self.next)?;
        self.next += 1;
        Some(row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rows.len() - self.next;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for RowsIter<'_, T> {}

impl<T> std::ops::Index<usize> for Rows<'_, T> {
    type Output = T;
    fn index(&self, index: usize) -> &T {
        self.get(index).unwrap_or_else(|| panic!("row {index} of {}", self.count))
    }
}

impl<'a, T> IntoIterator for Rows<'a, T> {
    type Item = &'a T;
    type IntoIter = RowsIter<'a, T>;
    fn into_iter(self) -> RowsIter<'a, T> {
        self.iter()
    }
}

/// # Safety
/// `count` elements live at `first` for `'a`; null only when there are none.
pub(crate) unsafe fn slice<'a, T>(first: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        &[]
    } else {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts(first, count) }
    }
}
