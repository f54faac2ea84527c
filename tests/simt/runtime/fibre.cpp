// SPDX-License-Identifier: Apache-2.0
#include "simt/runtime/fibre.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "simt/runtime/sanitizer.hpp"

namespace simt {

namespace {

namespace context = boost::context::detail;

// Enough for unoptimised CUB under AddressSanitizer. Reserved, and paid for only where touched.
constexpr std::size_t stack_bytes = 256U << 10;
constexpr std::size_t guard_bytes = 4096;

Fibre* starting = nullptr;  // begin() has no other way to learn who it is

#if defined(SIMT_TSAN)
constexpr unsigned no_edge = 1;  // a switch is no synchronisation
// A full one forgets early: every identity takes mappings, of which a process has not many.
void* retired[1 << 10];
unsigned retired_count = 0;
#endif

unsigned char* reserve_stack() {
  void* memory = mmap(nullptr, stack_bytes + guard_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE) != 0) {
    std::perror("simt: the stack of a fibre");
    std::abort();
  }
  return static_cast<unsigned char*>(memory) + guard_bytes;
}

}  // namespace

void Fibre::adopt_host() {
  host_ = true;
#if defined(SIMT_TSAN)
  identity_ = __tsan_get_current_fiber();
#endif
}

void Fibre::prepare(Entry entry) {
  if (stack_ == nullptr) {
    stack_ = reserve_stack();
    stack_bytes_ = stack_bytes;
#if defined(SIMT_TSAN)
    identity_ = __tsan_create_fiber(0);
#endif
  }
  sanitizer::unpoison(stack_, stack_bytes_);  // frames that never returned
  entry_ = entry;
  begun_ = false;
  fake_stack_ = nullptr;
  // Stacks that all end at the same offset of a page would compete for one set of the cache.
  const std::size_t colour = (view.linear % 64) * 192 % 4096;
  context_ = context::make_fcontext(stack_ + stack_bytes_ - colour, stack_bytes_ - colour, &begin);
}

void Fibre::jump(Fibre& to, [[maybe_unused]] bool for_good) {
  running_thread = to.host_ ? nullptr : &to.view;
  starting = &to;
#if defined(SIMT_ASAN)
  // Without a place to keep it, the fake stack of a fibre that ends is freed.
  __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack_, to.stack_, to.stack_bytes_);
#endif
#if defined(SIMT_TSAN)
  __tsan_switch_to_fiber(to.identity_, no_edge);
#endif
  arrived(*this, context::jump_fcontext(to.context_, this), fake_stack_);
}

void Fibre::arrived([[maybe_unused]] Fibre& self, context::transfer_t from,
                    [[maybe_unused]] void* fake_stack) {
  auto& previous = *static_cast<Fibre*>(from.data);
  previous.context_ = from.fctx;
#if defined(SIMT_ASAN)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack, &bottom, &bytes);
  if (previous.host_) {  // nobody else knows the host's stack
    previous.stack_ = const_cast<unsigned char*>(static_cast<const unsigned char*>(bottom));
    previous.stack_bytes_ = bytes;
  }
#endif
}

void Fibre::begin(context::transfer_t from) {
  Fibre& self = *starting;
  self.begun_ = true;
  arrived(self, from, nullptr);
  self.entry_(self);
  std::abort();  // an entry ends with exit_to()
}

void Fibre::exit_to(Fibre& to) {
  jump(to, true);
  std::abort();
}

void Fibre::abandon([[maybe_unused]] void* edge) {
#if defined(SIMT_TSAN)
  if (!begun_) return;
  void* host = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(identity_, no_edge);
  __tsan_release(edge);
  __tsan_ignore_thread_end();
  __tsan_switch_to_fiber(host, no_edge);
  __tsan_destroy_fiber(identity_);
  identity_ = __tsan_create_fiber(0);
#endif
}

void Fibre::renew_identity() {
#if defined(SIMT_TSAN)
  if (retired_count == sizeof retired / sizeof *retired) forget_retired();
  retired[retired_count++] = identity_;
  // The stack too: the new identity may not meet the traces of the old one in it.
  munmap(stack_ - guard_bytes, stack_bytes_ + guard_bytes);
  stack_ = nullptr;
#endif
}

void Fibre::forget_retired() {
#if defined(SIMT_TSAN)
  for (unsigned i = 0; i < retired_count; ++i) __tsan_destroy_fiber(retired[i]);
  retired_count = 0;
#endif
}

}  // namespace simt
