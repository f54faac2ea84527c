// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/any_policy.ipp"
