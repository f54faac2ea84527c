// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/query_summary.ipp"
