// What a call brings back from the device.
#pragma once

#include "staging.h"

namespace sparkfp4::cuda {

// Results that are enqueued together and waited for once. Until wait() has returned their memory must stay.
class Results {
 public:
  explicit Results(Staging &staging) : staging_(staging) {}
  // What was not waited for, because a call failed, is: the caller may free the memory next.
  ~Results();
  Results(const Results &) = delete;
  Results &operator=(const Results &) = delete;

  // Whether the device can write these bytes of the host where they lie.
  static bool is_direct(const void *memory, int64_t bytes);

  // Few bytes of any memory, such as an outcome's; any number of memory that is direct; other memory has its bytes
  // before this returns.
  cudaError_t add(void *to, const unsigned char *from, int64_t bytes);
  cudaError_t wait();

 private:
  // A result that lies in the staging's notes.
  struct Note {
    void *to;
    int64_t at;
    int64_t bytes;
  };
  static constexpr int kNotes = 4;

  Staging &staging_;
  Note notes_[kNotes] = {};
  int count_ = 0;
  int64_t noted_ = 0;
  bool pending_ = false;
};

}  // namespace sparkfp4::cuda
