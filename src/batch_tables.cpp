// SPDX-License-Identifier: Apache-2.0
#include "growpage/detail/batch_tables.ipp"
