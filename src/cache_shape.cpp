// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/cache_shape.ipp"
