// SPDX-License-Identifier: Apache-2.0
//! Threads the engine lends to the CPU kernels.

use crate::call::{call_back, initialised};
use crate::ffi::*;
use std::os::raw::c_void;

/// Threads of the engine.
///
/// # Safety
/// `run` calls `task(i, worker)` exactly once for every i in 0..tasks, worker in 0..workers(), no
/// two concurrent calls sharing a worker, and returns when all have returned.
pub unsafe trait Executor: Sync {
    /// At least 1, always the same.
    fn workers(&self) -> i32;
    /// See the trait.
    fn run(&self, tasks: i64, task: &(dyn Fn(i64, i32) + Sync));
}

/// An executor that starts its threads anew for every call: for tests and rare calls.
pub struct Threads {
    workers: i32,
}

impl Threads {
    /// At least one, the calling thread among them.
    pub fn new(workers: i32) -> Threads {
        Threads { workers: workers.max(1) }
    }
}

// SAFETY: worker w runs the tasks w, w + workers, …, one after the other.
unsafe impl Executor for Threads {
    fn workers(&self) -> i32 {
        self.workers
    }

    fn run(&self, tasks: i64, task: &(dyn Fn(i64, i32) + Sync)) {
        let work = |worker: i32| {
            (i64::from(worker)..tasks)
                .step_by(self.workers as usize)
                .for_each(|index| task(index, worker));
        };
        std::thread::scope(|scope| {
            let busy = tasks.min(i64::from(self.workers)) as i32;
            (1..busy).for_each(|worker| drop(scope.spawn(move || work(worker))));
            work(0);
        });
    }
}

/// growpage_executor, and the reference it calls: to be kept as long as its user.
pub(crate) struct Lent<'m> {
    c: growpage_executor,
    _target: Option<Box<&'m dyn Executor>>,
}

impl<'m> Lent<'m> {
    pub fn new(executor: Option<&'m dyn Executor>) -> Lent<'m> {
        // SAFETY: the right init.
        let mut c = unsafe { initialised(growpage_executor_init) };
        let target = executor.map(Box::new);
        if let Some(target) = &target {
            c.run = Some(run);
            c.context = &**target as *const &dyn Executor as *mut c_void;
            c.workers = target.workers();
        }
        Lent { c, _target: target }
    }

    pub fn pointer(&self) -> *const growpage_executor {
        &self.c
    }
}

/// The library's task, which it allows on any thread.
struct Task {
    function: unsafe extern "C" fn(*mut c_void, i64, i32),
    argument: *mut c_void,
}
// SAFETY: by the contract of growpage_executor.
unsafe impl Sync for Task {}

impl Task {
    fn run(&self, index: i64, worker: i32) {
        // SAFETY: as above.
        unsafe { (self.function)(self.argument, index, worker) }
    }
}

unsafe extern "C" fn run(
    context: *mut c_void,
    tasks: i64,
    task: growpage_task,
    argument: *mut c_void,
) {
    call_back((), || {
        // SAFETY: the context is the boxed reference of a living user.
        let executor = unsafe { *context.cast::<&dyn Executor>() };
        if let Some(function) = task {
            let task = Task { function, argument };
            executor.run(tasks, &|index, worker| task.run(index, worker));
        }
    });
}
