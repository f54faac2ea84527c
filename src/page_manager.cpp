// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/page_manager.ipp"
