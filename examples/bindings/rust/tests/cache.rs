// SPDX-License-Identifier: Apache-2.0
use growpage::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

fn options<'m>() -> CacheOptions<'m> {
    CacheOptions {
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
    }
}

/// Pseudo-random numbers in [−1, 1).
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut z = seed;
    let mut next = || {
        z = z.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (z >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn filled(cache: &Cache, tokens: i32) -> u64 {
    let sequence = cache.admit(&[], Key::default()).unwrap().sequence;
    cache.reserve(sequence, tokens.into()).unwrap();
    cache.append_unknown(sequence, tokens.into()).unwrap();
    let (mut slots, mut positions) = (vec![0; tokens as usize], vec![0; tokens as usize]);
    cache.token_tables(&[sequence], &[tokens], &mut slots, &mut positions).unwrap();
    for layer in 0..2 {
        let rows = noise(tokens as usize * 16, layer as u64 + 7);
        cache.append_kv(layer, &slots, &rows, Some(&rows)).unwrap();
    }
    cache.mark_computed(sequence, tokens).unwrap();
    let queries = noise(2 * 4 * 8, 99);
    let queries = Tensor::new(&queries, &[2, 1, 4, 8]).unwrap();
    cache.update_summaries(&[SummaryEntry { slot: 1, first: 1 }], &queries, 0).unwrap();
    sequence
}

#[test]
fn defaults_are_the_librarys() {
    let options = CacheOptions::default();
    assert_eq!((options.page_size, options.max_sequences, options.pages), (256, 1024, 0));
    assert!(options.prefix_caching && options.dtype == DType::Bf16);
    assert_eq!(options.summary.beta_short, 0.9);
    assert_eq!(SchedulerOptions::default().max_batched_tokens, 8192);
    assert_eq!(version().split('.').count(), 3);
}

#[test]
fn sequences_and_tables() {
    let cache = Cache::new(&options()).unwrap();
    let tokens: Vec<i32> = (0..40).collect();
    let first = cache.admit(&tokens, Key::default()).unwrap();
    assert_eq!(first.matched, 0);
    cache.reserve(first.sequence, 40).unwrap();
    assert!(cache.append(first.sequence, &tokens).unwrap().is_none());
    cache.mark_computed(first.sequence, 40).unwrap();
    let info = cache.sequence(first.sequence).unwrap();
    assert_eq!((info.length, info.slots, info.pages.len()), (40, 40, 3));
    let slot = cache.physical_slot(first.sequence, 17).unwrap();
    assert_eq!(slot, i64::from(info.pages[1]) * 16 + 1);
    assert_eq!(cache.match_length(&tokens, Key::default()).unwrap(), 32);
    let salted = Key { salt: b"tenant", ..Key::default() };
    assert_eq!(cache.match_length(&tokens, salted).unwrap(), 0);
    let second = cache.admit(&tokens, Key::default()).unwrap();
    assert_eq!(second.matched, 32);

    let both = [first.sequence, second.sequence];
    let stride = cache.padded_stride(&both).unwrap();
    let (mut table, mut lengths) = (vec![0; 2 * stride as usize], [0; 2]);
    cache.padded_tables(&both, stride, -1, &mut table, &mut lengths).unwrap();
    assert_eq!(lengths, [40, 32]);
    assert_eq!(table[..3], info.pages[..]);
    assert_eq!(table[3..], [info.pages[0], info.pages[1], -1]);
    let (indptr, indices, last) = cache.compressed_tables(&both).unwrap();
    assert_eq!((indptr, indices.len(), last), (vec![0, 3, 5], 5, vec![8, 16]));

    let fork = cache.fork(first.sequence).unwrap();
    let copy = cache.append(fork, &[7]).unwrap().unwrap();
    assert_eq!(copy.source, info.pages[2]);
    cache.run_copies(&[copy]).unwrap();
    let (done, copies, refusal) = cache.append_batch(&[fork, second.sequence], &[8, 8]);
    assert_eq!((done, copies.len(), refusal), (1, 0, Err(Error::AtCapacity)));
    cache.check_invariants().unwrap();
    for sequence in [first.sequence, second.sequence, fork] {
        cache.release(sequence).unwrap();
    }
    let counts = cache.info().unwrap();
    assert_eq!((counts.cached_pages, counts.sequences, counts.name()), (2, 0, "cpu-scalar"));
}

#[test]
fn errors_are_typed() {
    let wrong = CacheOptions { page_size: 17, pages: 4, ..Default::default() };
    let error = Cache::new(&wrong).map(drop).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)));
    let detail = error.detail().unwrap();
    assert!(detail.argument.contains("page_size") && detail.value == "17");
    assert!(detail.message.contains(&detail.allowed));

    let cache = Cache::new(&options()).unwrap();
    let sequence = cache.admit(&[], Key::default()).unwrap().sequence;
    let error = cache.append_unknown(sequence, 1).unwrap_err();
    assert_eq!(error, Error::AtCapacity);
    assert!(error.is_retryable());
    cache.release(sequence).unwrap();
    let error = cache.grow(sequence).unwrap_err();
    assert!(matches!(error, Error::StaleId(_)) && !error.is_retryable());
    assert!(error.to_string().contains("stale"), "{error}");
    assert!(cache.append_kv(0, &[1], &[0.0f32; 15], None).is_err());
    assert!(cache.append_kv(0, &[1], &[F16(0); 16], None).is_err());
    assert!(Tensor::new(&[0.0f32; 15], &[1, 2, 8]).is_err());
    assert!(Tensor::strided(&[0.0f32; 16], &[2, 8], &[9, 1]).is_err());
}

#[test]
fn memory_of_the_engine_is_shared() {
    let mut k = vec![F16(0); 2 * 12 * 16 * 2 * 8]; // NHD
    let mut v = k.clone();
    {
        let (k, v) = (
            Cell::from_mut(&mut k[..]).as_slice_of_cells(),
            Cell::from_mut(&mut v[..]).as_slice_of_cells(),
        );
        let shape = [2, 12, 2, 16, 8];
        let strides = [12 * 16 * 16, 16 * 16, 8, 16, 1];
        let cache = Cache::new(&CacheOptions {
            k: Some(Tensor::cells(k, &shape, &strides).unwrap()),
            v: Some(Tensor::cells(v, &shape, &strides).unwrap()),
            ..options()
        })
        .unwrap();
        cache.append_kv(1, &[16 * 3 + 2], &[F16(5); 16], Some(&[F16(6); 16])).unwrap();
        let row = 12 * 16 * 16 + 3 * 16 * 16 + 2 * 16;
        assert_eq!((k[row + 15].get(), k[row - 1].get()), (F16(5), F16(0)));
        assert_eq!(cache.kv().unwrap().0.data as usize, k.as_ptr() as usize);
    }
    assert_eq!(v.iter().filter(|x| **x == F16(6)).count(), 16);
    let read_only = [0.0f32; 2 * 12 * 2 * 16 * 8];
    let tensor = Tensor::new(&read_only, &[2, 12, 2, 16, 8]).unwrap();
    assert!(Cache::new(&CacheOptions { k: Some(tensor), ..options() }).is_err());
}

#[test]
fn demand_compaction_swap_and_threads() {
    let threads = Threads::new(3);
    let mut demands = Vec::new();
    for executor in [None, Some(&threads as &dyn Executor)] {
        let cache = Cache::new(&CacheOptions { executor, host_pages: 8, ..options() }).unwrap();
        let sequence = filled(&cache, 64);
        let demand = cache.measure_demand(sequence, 1, 63).unwrap();
        assert_eq!((demand.count, demand.delta()), (4, 0.0)); // one query: both are the same
        demands.push(demand.short_sum);
        let (strategy, shared) = (Strategy::FillHoles, Shared::Keep);
        let (ticket, copies) = cache.begin_compaction(sequence, 1, strategy, shared).unwrap();
        assert!(copies.is_empty());
        assert_eq!(cache.compressed_tables(&[sequence]).unwrap_err(), Error::Busy);
        cache.compact(&ticket, 1, 63, 0).unwrap();
        cache.complete_fence(ticket.fence).unwrap();
        assert_eq!(cache.sequence(sequence).unwrap().slots, 48);
        assert!(matches!(cache.truncate(sequence, 9), Err(Error::BehindCompaction(_))));

        let (transfers, fence) = cache.swap_out(sequence).unwrap();
        cache.run_swap_out(sequence, 1, &transfers).unwrap();
        cache.complete_fence(fence).unwrap();
        assert!(cache.sequence(sequence).unwrap().swapped);
        let (transfers, fence) = cache.swap_in(sequence).unwrap();
        cache.run_swap_in(sequence, 2, &transfers).unwrap();
        cache.complete_fence(fence).unwrap();
        let fence = cache.guard(sequence).unwrap();
        cache.release(sequence).unwrap();
        assert_eq!(cache.info().unwrap().in_flight_pages, 4);
        cache.complete_fence(fence).unwrap();
    }
    assert_eq!(demands[0], demands[1]);
}

#[test]
fn attention_of_one_key_is_its_value() {
    let cache = Cache::new(&options()).unwrap();
    let (k, v) = (noise(16, 1), noise(16, 2));
    cache.append_kv(0, &[16 * 5], &k, Some(&v)).unwrap();
    let mut out = [0.0; 32];
    cache.attention(0, &[5], &[1], &noise(32, 3), &mut out).unwrap();
    assert_eq!(out[..8], v[..8]); // query heads 0 and 1 read KV head 0
    assert_eq!(out[8..16], v[..8]);
    assert_eq!(out[24..], v[8..]);
    assert!(cache.attention(0, &[5], &[1], &[0.0; 31], &mut out).is_err());
}

#[test]
fn events_and_logs() {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let sink = lines.clone();
    let log = Log::new(LogLevel::Warning, move |level, text| {
        sink.borrow_mut().push((level, text.to_owned()));
    });
    let cache =
        Cache::new(&CacheOptions { event_capacity: 2, log: Some(log), ..options() }).unwrap();
    let sequence = cache.admit(&[], Key::default()).unwrap().sequence;
    cache.reserve(sequence, 64).unwrap();
    cache.append(sequence, &(0..64).collect::<Vec<_>>()).unwrap();
    cache.mark_computed(sequence, 64).unwrap();
    let none = Hash { low: 0, high: 0 };
    let empty = KvEvent { kind: -1, page: -1, hash: none, parent: none, tokens: 0, reserved: 0 };
    let mut events = [empty; 4];
    assert_eq!(cache.drain_events(&mut events).unwrap(), (2, 2));
    assert_eq!(EventKind::try_from(events[0].kind), Ok(EventKind::Stored));
    assert_eq!(events[1].parent, events[0].hash);
    assert!(cache.grow(1).is_err());
    assert_eq!(lines.borrow()[0].0, LogLevel::Warning);
}

#[test]
fn prefix_index() {
    let mut index = PrefixIndex::new(8, 16, None).unwrap();
    let root = prefix_root(Key::default()).unwrap();
    let tokens: Vec<i32> = (0..16).collect();
    assert!(index.lookup(&root, &tokens).unwrap().is_none());
    let (link, first) = index.publish(3, &root, &tokens).unwrap();
    assert!(first && link.hash == hash_page(&root.hash, &tokens).unwrap());
    assert_eq!(index.lookup(&root, &tokens).unwrap().unwrap().0, 3);
    index.lru_push(3).unwrap();
    assert_eq!(index.lru_oldest().unwrap(), Some(3));
    index.lru_remove(3).unwrap();
    assert_eq!(index.lru_oldest().unwrap(), None);
    assert_eq!(index.withdraw(3).unwrap(), (link.hash, true));
    assert!(index.lookup(&root, &tokens[1..]).is_err());
    let image = Key { modality: b"image", modality_from: 3, ..Key::default() };
    assert_ne!(join_modality(&root, image).unwrap().hash, root.hash);
    assert_eq!(link.hash.to_string().len(), 32);
}

#[test]
fn kernels_on_the_engines_memory() {
    let shape = [2, 6, 2, 16, 8];
    let strides = [6 * 256, 256, 128, 8, 1];
    let table = [4, 0, 3, 1];
    let mut results = Vec::new();
    let threads = Threads::new(2);
    for executor in [None, Some(&threads as &dyn Executor)] {
        let (mut k, mut v) = (noise(2 * 6 * 256, 5), noise(2 * 6 * 256, 6));
        let (k, v) = (
            Cell::from_mut(&mut k[..]).as_slice_of_cells(),
            Cell::from_mut(&mut v[..]).as_slice_of_cells(),
        );
        let mut kernels = Kernels::new(&KernelsOptions {
            layers: 2,
            query_heads: 4,
            kv_heads: 2,
            head_dim: 8,
            page_size: 16,
            isa: Isa::Scalar,
            max_slots: 64,
            k: Some(Tensor::cells(k, &shape, &strides).unwrap()),
            v: Some(Tensor::cells(v, &shape, &strides).unwrap()),
            executor,
            ..Default::default()
        })
        .unwrap();
        let slots = SummaryOptions { slots: 3, ..Default::default() };
        let mut summaries = kernels.summaries(&slots).unwrap();
        for (seed, first) in [(11, 1), (12, 0)] {
            let queries = noise(2 * 32, seed);
            let queries = Tensor::new(&queries, &[2, 1, 4, 8]).unwrap();
            let entries = [SummaryEntry { slot: 2, first }];
            kernels.update_summaries(&mut summaries, &entries, &queries, 0).unwrap();
        }
        let query = Query { summaries: &summaries, summary_slot: 2, position: 63 };
        let request = Table { pages: &table, slots: 64 };
        let demand = kernels.measure_demand(query, request).unwrap();
        let (mut scores, again) = kernels.score(query, request, None).unwrap();
        assert_eq!((demand.count, demand.short_sum), (4, again.short_sum));
        let marks = [PAGE_PRIVATE; 4];
        let selection = kernels.select(&scores, &marks, request, 48, 0).unwrap();
        assert!(selection.bits.iter().all(|bits| bits.count_ones() == 48));
        assert_eq!(selection.page_kept.iter().sum::<i32>(), 48 * 4);
        let plan = plan_compaction(&marks, &selection.page_kept, 1, Strategy::FillHoles).unwrap();
        kernels.compact(&plan, &selection, &marks, &table, Some(&mut scores)).unwrap();
        let wrong = Table { pages: &[4, 0, 6, 1], slots: 64 };
        assert!(kernels.measure_demand(query, wrong).is_err());
        assert!(kernels.select(&scores, &marks[1..], request, 48, 0).is_err());
        let rows: Vec<f32> = k.iter().chain(v).map(Cell::get).collect();
        results.push((scores, selection, rows));
    }
    assert!(results[0] == results[1]);
}
