#!/bin/sh
# Builds the library into target/native-resources, the module's resource folder, or checks what was built; Maven runs it.
# usage: build.sh AUTO|ON|OFF VERSION      JAVA_HOME names the JDK whose jni.h is used
#        build.sh check
# AUTO leaves the library out, with one line of warning, where a tool is missing; ON fails there; OFF leaves it out.
set -eu
mode=$1
version=${2:-}
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
  OFF) leave_out ;;
  *)
    echo "Invalid native.cpu: $mode, must be AUTO, ON or OFF" >&2
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
  if [ "$mode" = ON ]; then
    echo "Cannot build the native kernels: missing$missing (Debian: cmake ninja-build g++ openjdk-17-jdk-headless)" >&2
    exit 1
  fi
  echo "[WARNING] No native kernels in this build, the slower Java ones serve: missing$missing" >&2
  leave_out
fi

# Ninja configures anew by itself when CMakeLists.txt changes; another version or JDK is another stamp.
stamp="$version ${JAVA_HOME:-} ${CXX:-c++}"
if [ ! -f target/cmake/build.ninja ] || [ "$(cat target/cmake/stamp 2>/dev/null)" != "$stamp" ]; then
  rm -rf target/cmake
  mkdir -p target/cmake
  quietly cmake -S . -B target/cmake -G Ninja -DCMAKE_BUILD_TYPE=Release -DSPARKFP4_VERSION="$version"
  echo "$stamp" >target/cmake/stamp
fi
quietly cmake --build target/cmake
quietly cmake --install target/cmake --prefix target/native-resources --strip
