// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/paged_kv_cache_options.ipp"
