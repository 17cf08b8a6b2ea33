#!/bin/sh
# Builds the libraries into target/native-resources, the module's resource folder, or checks what was built; Maven
# runs it.
# usage: build.sh CPU CUDA VERSION      CPU and CUDA: AUTO|ON|OFF; JAVA_HOME names the JDK whose jni.h is used
#        build.sh check
# AUTO leaves a library out where a tool is missing, that of the CPU with one line of warning; ON fails there; OFF
# leaves it out. nvcc is that of CUDACXX, of CUDA_HOME or of PATH, and has to be of CUDA 13 or later.
set -eu
mode=$1
cuda=${2:-}
version=${3:-}
cd "$(dirname "$0")"

# What an earlier build left must not be packaged.
leave_out() {
  rm -rf target/native-resources target/classes/amd64 target/classes/aarch64
  exit 0
}

# Shows what a command printed only if it fails.
quietly() {
  "$@" >target/cmake/output.log 2>&1 || {
    cat target/cmake/output.log >&2
    exit 1
  }
}

# Checks the kernels once more, as AddressSanitizer and UndefinedBehaviorSanitizer see them.
check_sanitized() {
  flags=-fsanitize=address,undefined
  if ! echo 'int main() {}' | "${CXX:-c++}" -x c++ "$flags" - -o target/sanitized 2>/dev/null; then
    echo "[WARNING] The native kernels are not sanitized: ${CXX:-c++} has no $flags" >&2
    return
  fi

  if [ ! -f target/sanitize/build.ninja ]; then
    quietly cmake -S . -B target/sanitize -G Ninja -DSPARKFP4_JNI=OFF -DSPARKFP4_SANITIZE=ON
  fi
  quietly cmake --build target/sanitize --target check
}

case $mode in
  AUTO | ON) ;;
  check)
    [ -d target/native-resources ] || exit 0
    quietly cmake --build target/cmake --target check
    check_sanitized
    exit 0
    ;;
  OFF)
    if [ "$cuda" = ON ]; then
      echo "Cannot build the CUDA kernels: native.cuda=ON takes native.cpu, which is OFF" >&2
      exit 1
    fi
    leave_out
    ;;
  *)
    echo "Invalid native.cpu: $mode, must be AUTO, ON or OFF" >&2
    exit 2
    ;;
esac

case $cuda in
  AUTO | ON | OFF) ;;
  *)
    echo "Invalid native.cuda: $cuda, must be AUTO, ON or OFF" >&2
    exit 2
    ;;
esac

missing=
for tool in cmake ninja; do
  command -v "$tool" >/dev/null || missing="$missing $tool"
done
command -v "${CXX:-c++}" >/dev/null || missing="$missing g++"
[ -f "${JAVA_HOME:-}/include/jni.h" ] || missing="$missing JAVA_HOME/include/jni.h"

if [ -n "$missing" ]; then
  if [ "$mode" = ON ] || [ "$cuda" = ON ]; then
    echo "Cannot build the native kernels: missing$missing (Debian: cmake ninja-build g++ openjdk-17-jdk-headless)" >&2
    exit 1
  fi
  echo "[WARNING] No native kernels in this build, the slower Java ones serve: missing$missing" >&2
  leave_out
fi

nvcc=
if [ "$cuda" != OFF ]; then
  nvcc=${CUDACXX:-${CUDA_HOME:+$CUDA_HOME/bin/nvcc}}
  nvcc=$(command -v "${nvcc:-nvcc}" || true)
  release=$([ -z "$nvcc" ] || "$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  if [ "${release:-0}" -lt 13 ]; then
    if [ "$cuda" = ON ]; then
      echo "Cannot build the CUDA kernels: ${nvcc:-no nvcc}${release:+ is of CUDA $release}, set CUDACXX to the nvcc" \
        "of CUDA 13 or later (or of PyPI: nvidia-cuda-nvcc, .ci/requirements-cuda.txt)" >&2
      exit 1
    fi
    nvcc=
  fi
fi

# Ninja configures anew by itself when CMakeLists.txt changes; another version or JDK is another stamp.
stamp="$version ${JAVA_HOME:-} ${CXX:-c++} $nvcc"
if [ ! -f target/cmake/build.ninja ] || [ "$(cat target/cmake/stamp 2>/dev/null)" != "$stamp" ]; then
  rm -rf target/cmake
  mkdir -p target/cmake
  quietly cmake -S . -B target/cmake -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPARKFP4_VERSION="$version" \
    -DSPARKFP4_NVCC="$nvcc"
  echo "$stamp" >target/cmake/stamp
fi
quietly cmake --build target/cmake
rm -rf target/native-resources
quietly cmake --install target/cmake --prefix target/native-resources --strip
