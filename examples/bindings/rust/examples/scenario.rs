// SPDX-License-Identifier: Apache-2.0
//! The scenario of ../scenario.md.

use growpage::*;

const LAYERS: usize = 2;
const QUERY_HEADS: usize = 4;
const KV_HEADS: usize = 2;
const DIM: usize = 32;
const SLOTS: i32 = 8;

/// Stands for the model: pseudo-random projections of a token at a position, exact in f32.
fn project(out: &mut [f32], token: i32, position: i64, role: u64) {
    let word = (token as u64)
        .wrapping_mul(0x9E3779B97F4A7C15)
        .wrapping_add((position as u64).wrapping_mul(0xBF58476D1CE4E5B9))
        .wrapping_add(role.wrapping_mul(0x94D049BB133111EB));
    for (i, x) in out.iter_mut().enumerate() {
        let mut z = word.wrapping_add(i as u64);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
        z ^= z >> 31;
        *x = ((z >> 40) as i64 - (1 << 23)) as f32 / (1 << 23) as f32;
    }
}

/// Stands for sampling.
fn next_token(token: i32, position: i64) -> i32 {
    ((i64::from(token) * 31 + position * 17 + 7) % 1000) as i32
}

/// One token through the model: K and V into its slot and, with a summary row, its query into the
/// summaries. A real engine does this for the whole batch at once.
fn forward(cache: &Cache, token: i32, position: i64, slot: i64, row: SummaryEntry) -> Result<()> {
    let mut queries = [0.0; LAYERS * QUERY_HEADS * DIM];
    for layer in 0..LAYERS {
        let (mut k, mut v) = ([0.0; KV_HEADS * DIM], [0.0; KV_HEADS * DIM]);
        let query = &mut queries[layer * QUERY_HEADS * DIM..][..QUERY_HEADS * DIM];
        project(query, token, position, 3 * layer as u64);
        project(&mut k, token, position, 3 * layer as u64 + 1);
        project(&mut v, token, position, 3 * layer as u64 + 2);
        cache.append_kv(layer as i32, &[slot], &k, Some(&v))?;
    }
    if row.slot < 0 {
        return Ok(());
    }
    let shape = [LAYERS as i64, 1, QUERY_HEADS as i64, DIM as i64];
    cache.update_summaries(&[row], &Tensor::new(&queries, &shape)?, 0)
}

fn main() -> Result<()> {
    // 1. The policy, the cache, the scheduler.
    let mut policy = Policy::new("growpage", None)?;
    policy.set("initial_pages", 4)?;
    let cache = Cache::new(&CacheOptions {
        backend: Backend::Cpu,
        isa: Isa::Scalar, // equal bits everywhere
        layers: LAYERS as i32,
        query_heads: QUERY_HEADS as i32,
        kv_heads: KV_HEADS as i32,
        head_dim: DIM as i32,
        page_size: 16,
        pages: 24,
        dtype: DType::F32,
        summary: SummaryOptions { slots: SLOTS, ..Default::default() },
        retention: policy.retention()?,
        ..Default::default()
    })?;
    let limits = SchedulerOptions {
        max_running: SLOTS,
        summary_slots: SLOTS,
        decision_capacity: 4096,
        ..Default::default()
    };
    let mut scheduler = Scheduler::new(&cache, &policy, &limits)?;

    // 2. Some requests.
    for tag in 0..6 {
        let prompt = vec![tag as i32 + 1; 20 + 7 * tag];
        let tag = tag as u64;
        let request = Request { tag, prompt: &prompt, max_new_tokens: 150, ..Default::default() };
        scheduler.submit(&request)?;
    }

    // 3. The loop.
    let mut tokens = Vec::new();
    while scheduler.stats()?.idle == 0 {
        let mut step = scheduler.schedule()?;
        let fences = step.run_before_forward()?;
        tokens.clear();
        for chunk in step.plan.prefills {
            let mut end = (0, 0);
            for i in 0..chunk.tokens {
                let position = chunk.first_position + i64::from(i);
                let token = step.text(chunk.request)?[position as usize];
                let slot = cache.physical_slot(chunk.sequence, chunk.first_slot + i)?;
                let row = if i + 1 == chunk.tokens { chunk.summary } else { -1 };
                forward(&cache, token, position, slot, SummaryEntry { slot: row, first: 1 })?;
                end = (token, position);
            }
            if chunk.last != 0 {
                let token = next_token(end.0, end.1);
                tokens.push(SampledToken::new(chunk.request, token, false));
            }
        }
        for item in step.plan.decodes {
            let row = SummaryEntry { slot: item.summary, first: item.summary_first.into() };
            forward(&cache, item.token, item.position, item.slot, row)?;
            let token = next_token(item.token, item.position);
            tokens.push(SampledToken::new(item.request, token, false));
        }
        let demand = step.run_after_forward()?;
        step.complete(&StepResult { tokens: &tokens, demand, fences, failed: &[] })?;
    }

    // 4. What was decided.
    let (stats, (decisions, _)) = (scheduler.stats()?, scheduler.drain_decisions()?);
    println!(
        "{} tokens, {} steps, {} grow, {} compact",
        stats.decode_tokens, stats.steps, stats.grow, stats.compact
    );
    let hash = decision_log_hash(&decisions)?;
    println!("decision log: {} entries, hash {}", decisions.len(), hash);
    Ok(())
}
