// SPDX-License-Identifier: Apache-2.0
use growpage::*;
use std::panic::{catch_unwind, AssertUnwindSafe};

fn cache<'m>() -> Cache<'m> {
    Cache::new(&CacheOptions {
        backend: Backend::Cpu,
        isa: Isa::Scalar,
        layers: 2,
        query_heads: 4,
        kv_heads: 2,
        head_dim: 8,
        page_size: 16,
        pages: 12,
        dtype: DType::F32,
        summary: SummaryOptions { slots: 4, ..Default::default() },
        ..Default::default()
    })
    .unwrap()
}

fn limits() -> SchedulerOptions {
    SchedulerOptions {
        max_running: 4,
        summary_slots: 4,
        decision_capacity: 100,
        ..Default::default()
    }
}

/// A step without a model.
fn run(cache: &Cache, mut step: Step) {
    let fences = step.run_before_forward().unwrap();
    let mut tokens = Vec::new();
    let mut rows = Vec::new();
    for chunk in step.plan.prefills {
        rows.push(SummaryEntry { slot: chunk.summary, first: 1 });
        if chunk.last != 0 {
            tokens.push(SampledToken::new(chunk.request, 5, false));
        }
    }
    for item in step.plan.decodes {
        rows.push(SummaryEntry { slot: item.summary, first: item.summary_first.into() });
        tokens.push(SampledToken::new(item.request, 5, false));
    }
    rows.retain(|row| row.slot >= 0);
    if !rows.is_empty() {
        let queries = vec![1.0f32; 2 * rows.len() * 32];
        let queries = Tensor::new(&queries, &[2, rows.len() as i64, 4, 8]).unwrap();
        cache.update_summaries(&rows, &queries, 0).unwrap();
    }
    let demand = step.run_after_forward().unwrap();
    step.complete(&StepResult { tokens: &tokens, demand, fences, failed: &[] }).unwrap();
}

#[test]
fn plans_and_results() {
    let cache = cache();
    let mut policy = Policy::new("growpage", None).unwrap();
    policy.set("initial_pages", 2).unwrap();
    let mut scheduler = Scheduler::new(&cache, &policy, &limits()).unwrap();
    drop(policy);
    let prompt: Vec<i32> = (0..20).collect();
    let long = Request { tag: 11, prompt: &prompt, max_new_tokens: 40, ..Default::default() };
    let first = scheduler.submit(&long).unwrap();
    let key = Key { lora: b"adapter", ..Key::default() };
    let short = Request { tag: 12, prompt: &[3], max_new_tokens: 1, priority: -1, key };
    let second = scheduler.submit(&short).unwrap();
    assert_eq!(scheduler.state(first).unwrap(), RequestState::Waiting);

    let step = scheduler.schedule().unwrap();
    assert_eq!(step.plan.batched_tokens, 21);
    let tags: Vec<u64> = step.plan.prefills.iter().map(|chunk| chunk.tag).collect();
    assert_eq!(tags, [12, 11]);
    assert_eq!(step.plan.prefills[0].request, second);
    assert!(step.plan.decodes.is_empty() && step.plan.prefills.get(2).is_none());
    assert_eq!(step.text(first).unwrap(), prompt);
    assert!(step.complete(&StepResult::default()).is_err()); // no token
    assert!(matches!(scheduler.schedule().map(drop), Err(Error::ProtocolError(_))));
    run(&cache, scheduler.open_step().unwrap());
    assert!(scheduler.open_step().is_none());
    let finished = scheduler.finished().unwrap();
    assert_eq!((finished.len(), finished[0].tag, finished[0].generated), (1, 12, 1));
    assert!(matches!(scheduler.state(second), Err(Error::StaleId(_))));
    assert_eq!(scheduler.text(first).unwrap().last(), Some(&5));
    scheduler.abort(first).unwrap();
    let stats = scheduler.stats().unwrap();
    assert_eq!((stats.aborted, stats.idle), (1, 1));
    let huge = Request { prompt: &prompt, max_new_tokens: 1 << 40, ..Default::default() };
    let full = Policy::new("full", None).unwrap();
    drop(scheduler);
    let mut scheduler = Scheduler::new(&cache, &full, &limits()).unwrap();
    assert!(matches!(scheduler.submit(&huge), Err(Error::RequestTooLarge(_))));
    scheduler.check_invariants().unwrap();
}

#[test]
fn decisions_of_a_closure_that_panics_once() {
    let cache = cache();
    let calls = std::cell::Cell::new(0);
    let decide = move |boundary: &Boundary| {
        assert_eq!(boundary.request, 4);
        calls.set(calls.get() + 1);
        if calls.get() == 1 {
            panic!("mine");
        }
        Decision::Compact
    };
    let mut policy = Policy::user(true, decide, None).unwrap();
    policy.set("initial_pages", 3).unwrap();
    let mut scheduler = Scheduler::new(&cache, &policy, &limits()).unwrap();
    drop(policy);
    let request = Request { tag: 4, prompt: &[1; 20], max_new_tokens: 60, ..Default::default() };
    scheduler.submit(&request).unwrap();
    let mut panics = 0;
    while scheduler.stats().unwrap().idle == 0 {
        let result = catch_unwind(AssertUnwindSafe(|| match scheduler.open_step() {
            Some(step) => run(&cache, step),
            None => run(&cache, scheduler.schedule().unwrap()),
        }));
        if let Err(panic) = result {
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"mine"));
            panics += 1;
        }
    }
    assert_eq!(panics, 1);
    let (decisions, dropped) = scheduler.drain_decisions().unwrap();
    let kinds: Vec<_> = decisions.iter().map(|d| DecisionKind::try_from(d.kind)).collect();
    assert_eq!(kinds, [Ok(DecisionKind::Grow), Ok(DecisionKind::Compact)]);
    assert_eq!(dropped, 0);
    let text = decisions_to_jsonl(&decisions).unwrap();
    assert_eq!(text.lines().count(), 2);
    let whole = decision_log_hash(&decisions).unwrap();
    assert_ne!(whole, decision_log_hash(&decisions[..1]).unwrap());
}

#[test]
fn policies_by_name() {
    for name in ["full", "fixed", "zipage", "growpage", "random", "inverse", "shrink"] {
        let mut policy = Policy::new(name, None).unwrap();
        policy.validate(256).unwrap();
        assert_eq!(policy.info(256).unwrap().name(), name);
        for (parameter, value) in policy.parameters().unwrap() {
            policy.set(parameter, value).unwrap();
        }
    }
    let mut policy = Policy::new("growpage", None).unwrap();
    policy.set("threshold", 0.25).unwrap();
    policy.set("retention.recent", 32).unwrap();
    assert!(policy.parameters().unwrap().contains(&("threshold", Parameter::Double(0.25))));
    assert_eq!(policy.retention().unwrap().recent, 32);
    assert!(policy.set("threshold", 1).is_err()); // the other kind
    assert!(policy.set("thresh\0old", 1.0).is_err());
    let retention = RetentionOptions { sinks: 4, ..policy.retention().unwrap() };
    policy.set_retention(&retention).unwrap();
    assert_eq!(policy.retention().unwrap().sinks, 4);
    let mut boundary = Boundary { pages: 16, page_size: 256, length: 4096, ..Default::default() };
    boundary.measured = 1;
    boundary.demand = Demand { short_sum: 0.5, long_sum: 0.1, count: 1 };
    assert_eq!(policy.decide(&boundary).unwrap(), Decision::Grow);
    boundary.demand.short_sum = 0.2;
    assert_eq!(policy.decide(&boundary).unwrap(), Decision::Compact);
    assert!(Policy::new("growpag", None).is_err());
}

#[test]
fn a_call_back_cannot_call_the_library() {
    let inner = Policy::new("full", None).unwrap();
    let decide = move |_: &Boundary| {
        inner.validate(256).unwrap();
        Decision::Grow
    };
    let mut policy = Policy::user(false, decide, None).unwrap();
    let boundary = Boundary { pages: 1, page_size: 256, ..Default::default() };
    let result = catch_unwind(AssertUnwindSafe(|| policy.decide(&boundary)));
    assert!(result.is_err());
}
