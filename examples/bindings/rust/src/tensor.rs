// SPDX-License-Identifier: Apache-2.0
//! Strided views of the engine's arrays.

use crate::call::initialised;
use crate::enums::DType;
use crate::error::{Error, Result};
use crate::ffi::*;
use std::cell::Cell;
use std::marker::PhantomData;

/// Bits of an IEEE half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F16(pub u16);
/// Bits of a bfloat16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub u16);

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for super::F16 {}
    impl Sealed for super::Bf16 {}
}

/// Element types of tensors.
pub trait Element: Copy + sealed::Sealed {
    /// Its name in C.
    const DTYPE: DType;
}
impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
impl Element for F16 {
    const DTYPE: DType = DType::F16;
}
impl Element for Bf16 {
    const DTYPE: DType = DType::Bf16;
}

/// A strided array, borrowed for `'m`. Axes are in the order its user names, whatever the order in
/// memory: strides, in elements, say that. The last one is 1.
#[derive(Clone, Copy)]
pub struct Tensor<'m> {
    pub(crate) c: growpage_tensor,
    pub(crate) writable: bool,
    lifetime: PhantomData<&'m [Cell<f32>]>,
}

impl<'m> Tensor<'m> {
    /// To be read only; packed in the order of the axes.
    pub fn new<T: Element>(data: &'m [T], shape: &[i64]) -> Result<Tensor<'m>> {
        Tensor::build(data.as_ptr(), data.len(), T::DTYPE, shape, &packed(shape)?, false)
    }

    /// To be read only, with strides.
    pub fn strided<T: Element>(
        data: &'m [T],
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Tensor<'m>> {
        Tensor::build(data.as_ptr(), data.len(), T::DTYPE, shape, strides, false)
    }

    /// Memory the library writes too: KV memory, which both sides use (`Cell::from_mut` and
    /// `as_slice_of_cells` make cells of a mutable slice).
    pub fn cells<T: Element>(
        data: &'m [Cell<T>],
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Tensor<'m>> {
        let first = data.as_ptr().cast::<T>();
        Tensor::build(first, data.len(), T::DTYPE, shape, strides, true)
    }

    /// Memory of any other owner, say of another library.
    ///
    /// # Safety
    /// All elements of the shape lie in memory that lives for `'m` and that nobody else uses during
    /// calls that read or write it.
    pub unsafe fn from_raw(
        data: *mut std::ffi::c_void,
        dtype: DType,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Tensor<'m>> {
        Tensor::build(data.cast::<u8>(), usize::MAX, dtype, shape, strides, true)
    }

    fn build<T>(
        data: *const T,
        elements: usize,
        dtype: DType,
        shape: &[i64],
        strides: &[i64],
        writable: bool,
    ) -> Result<Tensor<'m>> {
        let dims = shape.len();
        if dims == 0 || dims > GROWPAGE_MAX_DIMS || strides.len() != dims {
            return Err(Error::invalid("Tensor shape", format!("{shape:?}"), "1 to 6 axes"));
        }
        let end = shape.iter().zip(strides).try_fold(1i64, |end, (&extent, &stride)| {
            let inside = extent >= 1 && stride >= 0;
            (extent - 1).checked_mul(stride)?.checked_add(end).filter(|_| inside)
        });
        if end.map_or(true, |end| end as u64 > elements as u64) {
            let value = format!("{shape:?}, strides {strides:?}");
            return Err(Error::invalid("Tensor", value, &format!("within {elements} elements")));
        }
        // SAFETY: the right init.
        let mut c = unsafe { initialised(growpage_tensor_init) };
        c.data = data as *mut T as *mut _;
        c.dtype = dtype as i32;
        c.ndim = dims as i32;
        c.shape[..dims].copy_from_slice(shape);
        c.strides[..dims].copy_from_slice(strides);
        Ok(Tensor { c, writable, lifetime: PhantomData })
    }

    /// Extents.
    pub fn shape(&self) -> &[i64] {
        &self.c.shape[..self.c.ndim as usize]
    }

    pub(crate) fn to_be_written(&self, name: &str) -> Result<*const growpage_tensor> {
        if self.writable {
            return Ok(&self.c);
        }
        Err(Error::invalid(name, "read only", "Tensor::cells or Tensor::from_raw"))
    }
}

/// Strides of an array without gaps.
fn packed(shape: &[i64]) -> Result<Vec<i64>> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = i64::checked_mul(strides[i], shape[i])
            .ok_or_else(|| Error::invalid("Tensor shape", format!("{shape:?}"), "in memory"))?;
    }
    Ok(strides)
}
