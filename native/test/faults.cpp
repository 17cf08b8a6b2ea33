// A mapping whose file is shortened gives zeros and says so; a mapping beside it and those that nobody watches are what
// they were.
#include "faults.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kPages = 4;

void require(bool holds, const char *what) {
  if (!holds) {
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
  }
}

// A file of bytes 7 that has no name any more.
int make_file(size_t bytes) {
  char name[] = "/tmp/sparkfp4-faults-XXXXXX";
  int file = mkstemp(name);
  require(file >= 0 && unlink(name) == 0, "a temporary file");
  char *content = static_cast<char *>(std::malloc(bytes));
  std::memset(content, 7, bytes);
  require(write(file, content, bytes) == static_cast<ssize_t>(bytes), "its content");
  std::free(content);
  return file;
}

const volatile char *map(int file, size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  require(memory != MAP_FAILED, "a mapping");
  return static_cast<const volatile char *>(memory);
}

}  // namespace

int main() {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t bytes = kPages * page;
  int shortened = make_file(bytes);
  int whole = make_file(bytes);
  const volatile char *gone = map(shortened, bytes);
  const volatile char *kept = map(whole, bytes);
  const volatile char *unwatched = map(shortened, bytes);
  // not from a page's beginning on, as slabs lie in their files
  int watch = sparkfp4::watch(const_cast<const char *>(gone) + 5, bytes - 5);
  int other = sparkfp4::watch(const_cast<const char *>(kept), bytes);
  require(watch >= 0 && other >= 0 && watch != other, "two watches");
  require(gone[bytes - 1] == 7 && !sparkfp4::has_faulted(watch), "bytes before the file is shortened");

  require(ftruncate(shortened, static_cast<off_t>(page)) == 0, "a shorter file");
  require(gone[5] == 7 && !sparkfp4::has_faulted(watch), "its first page");
  require(gone[2 * page] == 0 && gone[bytes - 1] == 0 && sparkfp4::has_faulted(watch), "zeros where pages are gone");
  require(gone[5] == 7, "the first page still");
  require(kept[bytes - 1] == 7 && !sparkfp4::has_faulted(other), "the other file");
  sparkfp4::unwatch(watch);
  require(sparkfp4::watch(const_cast<const char *>(kept), 1) == watch && !sparkfp4::has_faulted(watch),
          "a watch that is used again");

  pid_t child = fork();
  if (child == 0) {
    std::fclose(stderr);
    _exit(unwatched[bytes - 1]);
  }

  int status = 0;
  require(waitpid(child, &status, 0) == child, "a child's end");
  require(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "a fault that nobody watches for, which goes where it went");
  return 0;
}
