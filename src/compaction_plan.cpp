// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/compaction_plan.ipp"
