#include "faults.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace sparkfp4 {
namespace {

// A task has a few mappings; the handler walks all slots, and it may not wait for a lock.
constexpr int kSlots = 4096;
constexpr uintptr_t kFree = 0;
constexpr uintptr_t kTaken = 1;  // being filled

struct Slot {
  std::atomic<uintptr_t> begin;
  std::atomic<uintptr_t> end;
  std::atomic<bool> faulted;
};

Slot slots[kSlots];
uintptr_t page;
struct sigaction before;

// The mapping's pages from the one that faulted on, anew and empty.
bool replace(uintptr_t address, uintptr_t end) {
  uintptr_t from = address & ~(page - 1);
  return mmap(reinterpret_cast<void *>(from), end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
         MAP_FAILED;
}

// All others' faults belong to the handler that was there, in a JVM the JVM's.
void hand_on(int signal, siginfo_t *info, void *context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    // the instruction faults again, and this time as if nobody had asked
    sigaction(SIGBUS, &before, nullptr);
  }
}

void handle(int signal, siginfo_t *info, void *context) {
  uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Slot &slot : slots) {
    uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    uintptr_t end = slot.end.load(std::memory_order_relaxed);
    // a watch that ended and another that began in its place in between would pair one's begin with the other's end
    std::atomic_thread_fence(std::memory_order_acquire);
    bool same = slot.begin.load(std::memory_order_relaxed) == begin;
    if (same && begin > kTaken && address >= begin && address < end) {
      slot.faulted.store(true, std::memory_order_release);
      if (replace(address, end)) {
        return;
      }
    }
  }

  hand_on(signal, info, context);
}

void install() {
  page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &before);
}

// Not pthread_once, which in a library of a new glibc asks for that glibc.
void install_once() {
  enum { kNone, kUnderWay, kDone };
  static std::atomic<int> state{kNone};
  int none = kNone;
  if (state.compare_exchange_strong(none, kUnderWay)) {
    install();
    state.store(kDone, std::memory_order_release);
  }

  while (state.load(std::memory_order_acquire) != kDone) {
    sched_yield();
  }
}

}  // namespace

int watch(const void *address, size_t bytes) {
  install_once();
  uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < kSlots; i++) {
    uintptr_t free = kFree;
    if (slots[i].begin.compare_exchange_strong(free, kTaken)) {
      slots[i].end.store(begin + bytes, std::memory_order_relaxed);
      slots[i].faulted.store(false, std::memory_order_relaxed);
      slots[i].begin.store(begin, std::memory_order_release);
      return i;
    }
  }

  return -1;
}

bool has_faulted(int watch) {
  return slots[watch].faulted.load(std::memory_order_acquire);
}

void unwatch(int watch) {
  slots[watch].begin.store(kFree, std::memory_order_release);
}

}  // namespace sparkfp4
