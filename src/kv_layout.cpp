// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/kv_layout.ipp"
