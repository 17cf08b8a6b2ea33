// Mapped files that shrink, or whose storage fails, while they are read: a SIGBUS that would end the process.
#pragma once

#include <cstddef>

namespace sparkfp4 {

// Watches a mapping: pages of it that cannot be had become zeros, and it counts as faulted. Gives the number of its
// watch, or -1 where too many mappings are watched; it is then not.
int watch(const void *address, size_t bytes);

// Whether a page of the mapping could not be had since it is watched.
bool has_faulted(int watch);

// Ends a watch, before the mapping is given back.
void unwatch(int watch);

}  // namespace sparkfp4
