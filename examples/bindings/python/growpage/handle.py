# SPDX-License-Identifier: Apache-2.0
"""What all handles have in common, and the call-backs a handle may be given."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from growpage._ffi import ffi
from growpage._library import check, initialised, keep_exception, lib, text
from growpage.options import LogLevel

Self = TypeVar("Self", bound="Handle")
Log = Callable[[LogLevel, str], None]


def _destroy(name: str, _keep: tuple[object, ...], handle: Any) -> None:
    getattr(lib, f"growpage_{name}_destroy")(handle)


class Handle:
    """A context manager. `close` gives up the object: it is destroyed when nothing refers to it
    any more, neither a view of its memory nor a scheduler over it; so closing leaves no view
    dangling. Calls on a closed object raise InvalidArgument."""

    _c: Any = ffi.NULL

    def _create(self, name: str, *arguments: Any, keep: tuple[object, ...] = ()) -> None:
        """growpage_`name`(*arguments, &handle); `keep` stays alive as long as the object."""
        out = ffi.new(f"growpage_{name.split('_create')[0]}**")
        check(getattr(lib, f"growpage_{name}")(*arguments, out))
        self._c = ffi.gc(out[0], partial(_destroy, name.split("_create")[0], keep))

    def close(self) -> None:
        """No more calls. Harmless when already closed."""
        self._c = ffi.NULL

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def log_hooks(log: Log | None, level: LogLevel) -> tuple[Any, tuple[object, ...]]:
    """growpage_hooks for a Python log function, and what must live as long as the handle."""
    if log is None:
        return ffi.NULL, ()

    def call(_context: Any, at: int, message: Any) -> None:
        try:
            log(LogLevel(at), text(message))
        except BaseException as exception:  # also KeyboardInterrupt: raised at the call instead
            keep_exception(exception)

    hooks = initialised("hooks")
    callback = hooks.log = ffi.callback("void(void*, int32_t, const char*)", call)
    hooks.log_level = level
    return hooks, (hooks, callback)


class Executor:
    """Threads for the CPU kernels, which run outside the interpreter lock. Shared by any number of
    caches and kernels; the pool's threads end with the interpreter or with `close`."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(max(workers - 1, 1), "growpage")
        callback = "void(void*, int64_t, growpage_task, void*)"
        self.c = initialised("executor")
        self.c.run = self._callback = ffi.callback(callback, self._run)
        self.c.workers = workers

    def _run(self, _context: Any, tasks: int, task: Any, argument: Any) -> None:
        def work(worker: int) -> None:
            for index in range(worker, tasks, self.workers):
                task(argument, index, worker)

        started = []
        for worker in range(1, min(self.workers, tasks)):
            try:
                started.append(self._pool.submit(work, worker))
            except RuntimeError as exception:  # closed: every task must run all the same
                keep_exception(exception)
                work(worker)
        work(0)
        for future in started:
            future.result()

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()
