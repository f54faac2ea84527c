// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/rope.ipp"
