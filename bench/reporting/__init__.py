# SPDX-License-Identifier: Apache-2.0
"""What bench/report.py is made of."""
