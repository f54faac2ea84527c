# SPDX-License-Identifier: Apache-2.0
"""Options and enumerations of the C header under their own names. Defaults are the library's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from growpage._library import lib


class Backend(IntEnum):
    """Who runs the kernels. NONE: the engine; the cache only keeps the books."""

    NONE = lib.GROWPAGE_BACKEND_NONE
    CPU = lib.GROWPAGE_BACKEND_CPU
    CUDA = lib.GROWPAGE_BACKEND_CUDA


class DType(IntEnum):
    """Element types of KV memory."""

    F32 = lib.GROWPAGE_F32
    F16 = lib.GROWPAGE_F16
    BF16 = lib.GROWPAGE_BF16


class Layout(IntEnum):
    """Order of head and token in memory the library allocates."""

    HND = lib.GROWPAGE_LAYOUT_HND
    NHD = lib.GROWPAGE_LAYOUT_NHD


class Isa(IntEnum):
    """CPU kernels. SCALAR gives equal bits on every machine."""

    AUTOMATIC = lib.GROWPAGE_ISA_AUTOMATIC
    SCALAR = lib.GROWPAGE_ISA_SCALAR
    SIMD = lib.GROWPAGE_ISA_SIMD


class Storage(IntEnum):
    """Of query summaries."""

    F32 = lib.GROWPAGE_STORAGE_F32
    F16_STOCHASTIC = lib.GROWPAGE_STORAGE_F16_STOCHASTIC


class RopePairing(IntEnum):
    """Which dimensions rotate together."""

    HALF_SPLIT = lib.GROWPAGE_ROPE_HALF_SPLIT
    INTERLEAVED = lib.GROWPAGE_ROPE_INTERLEAVED


class Metric(IntEnum):
    """What demand is measured by (paper, eq. 4; ablation)."""

    TOP_P = lib.GROWPAGE_METRIC_TOP_P
    ENTROPY = lib.GROWPAGE_METRIC_ENTROPY


class Group(IntEnum):
    """How the query heads of a KV head are joined for demand."""

    MEAN = lib.GROWPAGE_GROUP_MEAN
    PER_QUERY_HEAD = lib.GROWPAGE_GROUP_PER_QUERY_HEAD


class Score(IntEnum):
    """What tokens are ranked by: GrowPage's summaries or Zipage's window."""

    SUMMARIES = lib.GROWPAGE_SCORE_SUMMARIES
    WINDOW = lib.GROWPAGE_SCORE_WINDOW


class Strategy(IntEnum):
    """How kept rows are brought together."""

    FILL_HOLES = lib.GROWPAGE_FILL_HOLES
    IN_ORDER = lib.GROWPAGE_IN_ORDER


class Shared(IntEnum):
    """What a compaction does with pages that others read too."""

    KEEP = lib.GROWPAGE_SHARED_KEEP
    COPY = lib.GROWPAGE_SHARED_COPY


class Preemption(IntEnum):
    """How a preempted request comes back."""

    RECOMPUTE = lib.GROWPAGE_PREEMPT_RECOMPUTE
    SWAP = lib.GROWPAGE_PREEMPT_SWAP


class Decision(IntEnum):
    """Answer of a policy at a capacity boundary."""

    GROW = lib.GROWPAGE_GROW
    COMPACT = lib.GROWPAGE_COMPACT
    SHRINK = lib.GROWPAGE_SHRINK


class DecisionKind(IntEnum):
    """Kinds of entries of the decision log."""

    GROW = lib.GROWPAGE_DECISION_GROW
    COMPACT = lib.GROWPAGE_DECISION_COMPACT
    SHRINK = lib.GROWPAGE_DECISION_SHRINK
    FALLBACK = lib.GROWPAGE_DECISION_FALLBACK
    SWAP_OUT = lib.GROWPAGE_DECISION_SWAP_OUT
    RECOMPUTE = lib.GROWPAGE_DECISION_RECOMPUTE


class RequestState(IntEnum):
    """Where a request is."""

    WAITING = lib.GROWPAGE_WAITING
    PREFILLING = lib.GROWPAGE_PREFILLING
    DECODING = lib.GROWPAGE_DECODING
    COMPACTING = lib.GROWPAGE_COMPACTING
    SWAPPING_OUT = lib.GROWPAGE_SWAPPING_OUT
    SWAPPED = lib.GROWPAGE_SWAPPED
    SWAPPING_IN = lib.GROWPAGE_SWAPPING_IN


class EventKind(IntEnum):
    """Kinds of KV events."""

    STORED = lib.GROWPAGE_EVENT_STORED
    REMOVED = lib.GROWPAGE_EVENT_REMOVED
    CLEARED = lib.GROWPAGE_EVENT_CLEARED


class LogLevel(IntEnum):
    """The highest level wanted."""

    ERROR = lib.GROWPAGE_LOG_ERROR
    WARNING = lib.GROWPAGE_LOG_WARNING
    DEBUG = lib.GROWPAGE_LOG_DEBUG


class PageMark(IntEnum):
    """Bits of page marks."""

    PRIVATE = lib.GROWPAGE_PAGE_PRIVATE
    PROTECTED = lib.GROWPAGE_PAGE_PROTECTED


@dataclass(frozen=True)
class SummaryOptions:
    """The two smoothed query summaries of every running request (paper, section 3.2)."""

    beta_short: float = 0.9  # weight of the OLD value, at least 0
    beta_long: float = 0.0  # 0 = 1 - 0.256 / page_size; else beta_short < beta_long < 1
    slots: int = 512  # requests that can run at once
    window: int = 0  # recent queries kept per slot, for window scoring
    storage: Storage = Storage.F32
    seed: int = 0  # of stochastic rounding


@dataclass(frozen=True)
class Rope:
    """The engine's rotary embedding; give inv_freq or both tables, as float32 arrays."""

    rotary_dim: int = 0  # even, 0 ... head_dim
    pairing: RopePairing = RopePairing.HALF_SPLIT
    inv_freq: npt.NDArray[np.float32] | None = None  # [rotary_dim / 2]
    cos_table: npt.NDArray[np.float32] | None = None  # [max_position, rotary_dim / 2]
    sin_table: npt.NDArray[np.float32] | None = None  # [max_position, rotary_dim / 2]
    attention_scale: float = 1.0


@dataclass(frozen=True)
class DemandOptions:
    """How attention demand is measured (paper, eq. 4 and 5)."""

    p: float = 0.99  # mass of the working set, 0 < p <= 1
    metric: Metric = Metric.TOP_P
    group: Group = Group.MEAN
    layer_mask: npt.NDArray[np.uint8] | None = None  # [layer] nonzero = counts; None = all


@dataclass(frozen=True)
class RetentionOptions:
    """Which tokens survive a compaction (paper, section 3.4; Zipage, section 3)."""

    score: Score = Score.SUMMARIES
    strategy: Strategy = Strategy.FILL_HOLES
    shared: Shared = Shared.KEEP
    recent: int = 16  # last slots always kept
    local_per_256: int = 64  # best of every page always kept, scaled by page_size / 256
    sinks: int = 0  # first tokens always kept
    protect_prompt: bool = False
    window: int = 16  # queries of window scoring
    max_pool: int = 0  # 0 = off, else odd
    global_decay: float = 0.0  # 0 = off
    redundancy_weight: float = 0.0  # 0 = off
    redundancy_temperature: float = 0.4


@dataclass(frozen=True)
class Key:
    """What besides the tokens decides the content of a page. Empty = absent."""

    salt: bytes = b""  # tenant or cache salt
    lora: bytes = b""  # adapter id
    modality: bytes = b""  # digest of images, audio, ...
    modality_from: int = 0  # first position the modality affects
