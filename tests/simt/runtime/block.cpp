// SPDX-License-Identifier: Apache-2.0
#include "simt/runtime/block.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "simt/runtime/sanitizer.hpp"

namespace simt {

constinit const ThreadView* running_thread = nullptr;

void outside_kernel() {
  std::fputs("simt: host code used a device built-in\n", stderr);
  std::abort();
}

namespace {

// Addresses that stand for happens-before edges.
char start_edge;
char end_edge;
char ordered_edges[Block::all_edge_bytes];

}  // namespace

Block& the_block() {
  static Block& block = *new Block;
  return block;
}

bool Block::run(const std::function<void()>& run_thread, uint3 index, dim3 threads, dim3 grid,
                char* edges) {
  run_thread_ = &run_thread;
  index_ = index;
  threads_ = alive_ = threads.x * threads.y * threads.z;
  waiting_ = phase_ = lonely_yields_ = 0;
  error_.clear();
  edges_ = edges != nullptr ? edges : ordered_edges;
  ready_.start_block(threads_);
  host_.adopt_host();
  for (unsigned i = 0; i < threads_; ++i) start_thread(i, index, threads, grid);
  for (unsigned first = 0; first < threads_; first += 32) {
    Warp& warp = warps_[first / 32];
    warp.open = 0;
    warp.alive = threads_ - first >= 32 ? ~0U : (1U << (threads_ - first)) - 1;
  }

  const bool unordered = edges != nullptr;
  // Unordered blocks begin after what the host did, but not after each other: it acquires nothing
  // between them.
  sanitizer::release(&start_edge);
  running_ = &next();
  host_.switch_to(*running_);
  if (!error_.empty()) abandon_threads();
  if (unordered) {
    for (unsigned i = 0; i < threads_; ++i) fibres_[i].renew_identity();
  } else {
    sanitizer::acquire(&end_edge);
  }
  return error_.empty();
}

void Block::start_thread(unsigned linear, uint3 index, dim3 threads, dim3 grid) {
  Fibre& fibre = fibres_[linear];
  const uint3 thread{linear % threads.x, linear / threads.x % threads.y,
                     linear / (threads.x * threads.y)};
  fibre.view = {thread, index, threads, grid, linear % 32, linear};
  fibre.prepare(&thread_entry);
  make_ready(fibre);
}

void Block::thread_entry(Fibre& self) {
  Block& block = the_block();
  sanitizer::acquire(&start_edge);
  std::string thrown;
  try {
    (*block.run_thread_)();
  } catch (const std::exception& exception) {
    thrown = fmt::format("exception in thread {}: {}", self.view.linear, exception.what());
  }
  // Not in the handler: a switch in there would upset the run-time library's list of exceptions.
  if (!thrown.empty()) {
    const sanitizer::RuntimeScope scope;
    block.fail(std::move(thrown));
  }
  self.exit_to(block.leave(self));
}

Fibre& Block::leave(Fibre& self) {
  const sanitizer::RuntimeScope scope;
  Warp& warp = warps_[self.view.linear / 32];
  warp.alive &= ~(1U << self.view.lane);
  --alive_;
  self.state = Fibre::State::exited;
  // Nobody waits for a thread that has returned.
  for (unsigned slot = 0; slot < Warp::slots; ++slot) {
    if ((warp.open >> slot & 1U) != 0 && warp.complete(slot)) complete(warp, slot);
  }
  if (alive_ > 0 && waiting_ == alive_) open_barrier();
  sanitizer::release(&end_edge);
  running_ = &next();
  return *running_;
}

void Block::make_ready(Fibre& fibre) {
  fibre.state = Fibre::State::ready;
  ready_.insert(fibre.view.linear);
}

Fibre& Block::next() {
  if (error_.empty() && ready_.empty() && !release_active_masks() && alive_ > 0) {
    error_ = deadlock();
  }
  if (!error_.empty() || ready_.empty()) return host_;
  return fibres_[ready_.take()];
}

void Block::wait(Location at) {
  Fibre& self = *running_;
  self.at = at;
  lonely_yields_ = 0;
  running_ = &next();
  if (running_ != &self) self.switch_to(*running_);
}

void Block::yield() {
  constexpr unsigned patience = 1U << 20;
  Fibre& self = *running_;
  if (ready_.empty() && !release_active_masks()) {
    // It may just sleep. But what it waits for, if it does, can no longer come.
    if (++lonely_yields_ < patience) return;
    std::string what = fmt::format(
        "thread {} sleeps in a loop and no other thread of its block can run", self.view.linear);
    fail(std::move(what));
  }
  lonely_yields_ = 0;
  running_ = &fibres_[ready_.take_any()];
  make_ready(self);
  self.switch_to(*running_);
}

void Block::fail(std::string&& what) {
  if (error_.empty()) error_.swap(what);
  std::string().swap(what);  // its destructor will not run
  Fibre& self = *running_;
  running_ = &host_;
  self.switch_to(host_);
  std::abort();  // an abandoned thread is never switched to
}

std::string Block::deadlock() const {
  // In the order of their first threads.
  std::vector<std::pair<std::string, std::vector<unsigned>>> groups;
  for (unsigned i = 0; i < threads_; ++i) {
    const Fibre& fibre = fibres_[i];
    std::string where = "returned";
    if (fibre.state == Fibre::State::at_barrier) {
      where = fmt::format("wait at the barrier {}", place(fibre.at));
    } else if (fibre.state == Fibre::State::in_collective) {
      where =
          fmt::format("wait in a collective with mask {:#010x} at {}", fibre.mask, place(fibre.at));
    }
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& known) { return known.first == where; });
    if (group == groups.end()) group = groups.insert(group, {where, {}});
    group->second.push_back(i);
  }
  std::string text = fmt::format("deadlock in block ({}, {}, {})", index_.x, index_.y, index_.z);
  char separator = ':';
  for (const auto& [where, members] : groups) {
    text += fmt::format("{} {} threads, the first {}, {}", separator, members.size(),
                        members.front(), where);
    separator = ';';
  }
  return text;
}

void Block::abandon_threads() {
  for (unsigned i = 0; i < threads_; ++i) {
    if (fibres_[i].state != Fibre::State::exited) fibres_[i].abandon(&end_edge);
  }
}

void Block::finish_grid() {
  sanitizer::acquire(&end_edge);
  Fibre::forget_retired();
}

std::string place(const Location& at) {
  std::string_view file = at.file_name();
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  return fmt::format("{}:{}:{}", file, at.line(), at.column());
}

bool same_place(const Location& a, const Location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

}  // namespace simt
