// Works on the device, each beside the device's own copy of as many bytes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Ends the program with a message where the status is not 0.
void require(int status, const char *what);

struct Work {
  std::string name;
  int64_t bytes;              // that it reads and writes
  std::function<int()> run;   // enqueues it; a status
  int64_t items = 0;          // keys, heads or tokens, where a table tells their rate
};

// Prints a table of medians: works and copies take turns in each round. items: of what a column tells the rate, or
// null. from, to: device memory of half the bytes of any work.
void measure(const std::vector<Work> &works, int rounds, cudaStream_t stream, const unsigned char *from,
             unsigned char *to, const char *items = nullptr);

double median(std::vector<double> values);
