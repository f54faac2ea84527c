// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/memory.ipp"
