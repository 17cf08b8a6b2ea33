// A scope of a device touches that device alone, whatever the thread had before. CUDA is played here.
#include "../cuda/device_scope.h"

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kDevices = 3;

void require(bool holds, const char *what) {
  if (!holds) {
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
  }
}

// As the runtime has it since CUDA 12: a device that is used gets a context, which stays.
struct Played {
  static char contexts[kDevices];
  static bool made[kDevices];
  static void *current;
  static cudaError_t refusal;
  static bool knows;

  static void begin(void *context) {
    current = context;
    refusal = cudaSuccess;
    knows = true;
    for (bool &device : made) {
      device = false;
    }
  }

  static cudaError_t context(void **context) {
    *context = knows ? current : nullptr;
    return knows ? cudaSuccess : cudaErrorInsufficientDriver;
  }

  static cudaError_t use(int device) {
    if (refusal == cudaSuccess) {
      made[device] = true;
      current = &contexts[device];
    }

    return refusal;
  }

  static void give_back(void *context) { current = context; }
};

char Played::contexts[kDevices];
bool Played::made[kDevices];
void *Played::current;
cudaError_t Played::refusal;
bool Played::knows;

using Scope = sparkfp4::cuda::BasicDeviceScope<Played>;

}  // namespace

int main() {
  Played::begin(nullptr);
  {
    Scope scope(1);
    require(scope.error() == cudaSuccess && Played::current == &Played::contexts[1], "the device is used");
    Scope inner(2);
    require(Played::current == &Played::contexts[2], "that of an inner scope is used");
  }
  require(Played::current == nullptr, "a thread without a device is left without one");
  require(!Played::made[0] && Played::made[1] && Played::made[2], "no other device is touched");

  Played::begin(&Played::contexts[2]);
  {
    Scope scope(1);
    require(Played::current == &Played::contexts[1], "the device is used in place of another");
  }
  require(Played::current == &Played::contexts[2], "the other is given back");
  require(!Played::made[0] && !Played::made[2], "by its context, not by its number");

  Played::begin(&Played::contexts[2]);
  Played::refusal = cudaErrorDevicesUnavailable;
  {
    Scope scope(1);
    require(scope.error() == cudaErrorDevicesUnavailable, "a refusal is told");
  }
  require(Played::current == &Played::contexts[2], "a refusal leaves the thread as it was");

  Played::begin(nullptr);
  Played::knows = false;
  Scope scope(1);
  require(scope.error() == cudaErrorInsufficientDriver && !Played::made[1], "without a driver nothing is tried");
  return 0;
}
