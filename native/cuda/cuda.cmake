# libsparkfp4-cuda.so: the kernels for NVIDIA GPUs, its test and its benchmark.

# nvcc is called by commands of our own: as a language of CMake it would have to link a program first, which needs a
# toolkit laid out as the vendor's installer does it.

# Machine code for each generation, and PTX of the newest for those to come. The f of 100f and 120f: of the family, for
# the conversion to E2M1 is not in the common set of instructions.
set(SPARKFP4_CUDA_TARGETS "80;90;100f;120f" CACHE STRING "Compute capabilities that get machine code")
set(CUDA_OPTIONS -std=c++17 -O3 -fmad=false -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off,-fno-exceptions
                 "-I${CMAKE_CURRENT_SOURCE_DIR}/include")
foreach(target IN LISTS SPARKFP4_CUDA_TARGETS)
  list(APPEND CUDA_OPTIONS -gencode "arch=compute_${target},code=sm_${target}")
endforeach()
list(APPEND CUDA_OPTIONS -gencode arch=compute_120,code=compute_120)

get_filename_component(CUDA_BIN "${SPARKFP4_NVCC}" REALPATH)
get_filename_component(CUDA_BIN "${CUDA_BIN}" DIRECTORY)
find_file(CUDART_STATIC libcudart_static.a REQUIRED NO_DEFAULT_PATH
          PATHS "${CUDA_BIN}/../lib" "${CUDA_BIN}/../lib64" "${CUDA_BIN}/../targets/x86_64-linux/lib")
find_path(CUDA_INCLUDE cuda_runtime_api.h REQUIRED NO_DEFAULT_PATH
          PATHS "${CUDA_BIN}/../include" "${CUDA_BIN}/../targets/x86_64-linux/include")

# -MT: Ninja builds anew what a dependency file calls by another name than it does itself.
set(CUDA_OBJECTS "")
foreach(source IN ITEMS amax conclude dequantize encode_codes encode_mxfp4 encode_plain encode_strips hessian keys
               keys_aligned keys_formed keys_normed latents layout_decode layouts mxfp4 norms_aligned search values)
  set(object "${CMAKE_BINARY_DIR}/cuda/${source}.o")
  add_custom_command(OUTPUT "${object}"
                     COMMAND "${SPARKFP4_NVCC}" ${CUDA_OPTIONS} -MD -MF "${object}.d" -MT "cuda/${source}.o" -c
                             "${CMAKE_CURRENT_SOURCE_DIR}/cuda/${source}.cu" -o "${object}"
                     DEPENDS cuda/${source}.cu DEPFILE "${object}.d" VERBATIM)
  list(APPEND CUDA_OBJECTS "${object}")
endforeach()
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/cuda")
add_custom_target(cuda-objects DEPENDS ${CUDA_OBJECTS})

add_library(cuda-kernels OBJECT cuda/context.cpp cuda/device_face.cpp cuda/device_scope.cpp cuda/enqueue.cpp
            cuda/host_face.cpp cuda/host_parts.cpp cuda/pinned.cpp cuda/results.cpp cuda/staging.cpp
            cuda/key_device_face.cpp cuda/key_host_pages.cpp cuda/key_host_rows.cpp cuda/launch.cpp
            cuda/layout_faces.cpp cuda/values_face.cpp)
target_include_directories(cuda-kernels PRIVATE include)
target_include_directories(cuda-kernels SYSTEM PRIVATE "${CUDA_INCLUDE}")
target_compile_definitions(cuda-kernels PRIVATE "SPARKFP4_VERSION=\"${SPARKFP4_VERSION}\"")

# The runtime's own symbols stay inside: another library of the process may have another copy.
set(CUDA_LINK "${CUDART_STATIC}" dl rt pthread)
file(GLOB CUDA_JNI CONFIGURE_DEPENDS src/jni_cuda*.cpp)
if(NOT SPARKFP4_JNI)
  set(CUDA_JNI "")
endif()
add_library(sparkfp4-cuda SHARED ${CUDA_JNI} $<TARGET_OBJECTS:cuda-kernels> ${CUDA_OBJECTS})
target_include_directories(sparkfp4-cuda PRIVATE include)
target_include_directories(sparkfp4-cuda SYSTEM PRIVATE "${CUDA_INCLUDE}" "${JNI_HOME}/include"
                                                        "${JNI_HOME}/include/linux")
target_link_libraries(sparkfp4-cuda PRIVATE ${CUDA_LINK})
target_link_options(sparkfp4-cuda PRIVATE ${LINK_OPTIONS} -Wl,--exclude-libs,ALL)
add_dependencies(sparkfp4-cuda cuda-objects)
install(TARGETS sparkfp4-cuda LIBRARY DESTINATION "${SPARKFP4_ARCH}/Linux")

add_executable(cuda-test EXCLUDE_FROM_ALL cuda/test/main.cpp cuda/test/check.cpp cuda/test/devices.cpp
               cuda/test/failures.cpp cuda/test/key_calls.cpp cuda/test/keys.cpp cuda/test/layouts.cpp
               cuda/test/mxfp4.cpp cuda/test/norms.cpp cuda/test/plain.cpp cuda/test/plain_unit.cpp
               cuda/test/quantized.cpp cuda/test/quantized_unit.cpp cuda/test/search.cpp
               cuda/test/values.cpp
               $<TARGET_OBJECTS:cuda-kernels> ${CUDA_OBJECTS} $<TARGET_OBJECTS:kernels>)
set(CUDA_PROGRAMS cuda-test)
set(CUDA_TESTS cuda-test)
if(SPARKFP4_BENCH)
  add_executable(sparkfp4-cuda-bench cuda/bench/main.cpp cuda/bench/host_units.cpp cuda/bench/keys.cpp
                 cuda/bench/measure.cpp cuda/bench/units.cpp
                 $<TARGET_OBJECTS:cuda-kernels> ${CUDA_OBJECTS})
  add_executable(sparkfp4-cuda-host-bench cuda/bench/host.cpp $<TARGET_OBJECTS:cuda-kernels> ${CUDA_OBJECTS})
  add_executable(sparkfp4-cuda-layouts-bench cuda/bench/layouts.cpp cuda/bench/measure.cpp
                 $<TARGET_OBJECTS:cuda-kernels> ${CUDA_OBJECTS})
  list(APPEND CUDA_PROGRAMS sparkfp4-cuda-bench sparkfp4-cuda-host-bench sparkfp4-cuda-layouts-bench)
endif()
foreach(program IN LISTS CUDA_PROGRAMS)
  target_include_directories(${program} PRIVATE include)
  target_include_directories(${program} SYSTEM PRIVATE "${CUDA_INCLUDE}")
  target_link_libraries(${program} PRIVATE ${CUDA_LINK})
  # Tests and benchmarks use what throws.
  target_compile_options(${program} PRIVATE -fexceptions)
  add_dependencies(${program} cuda-objects)
endforeach()
# Needs none.
add_executable(device-scope EXCLUDE_FROM_ALL test/device_scope.cpp)
target_include_directories(device-scope SYSTEM PRIVATE "${CUDA_INCLUDE}")
add_test(NAME device-scope COMMAND device-scope)
add_executable(marlin-words EXCLUDE_FROM_ALL test/marlin_words.cpp)
# Pragmas of the device's compiler.
target_compile_options(marlin-words PRIVATE -Wno-unknown-pragmas)
add_test(NAME marlin-words COMMAND marlin-words)
add_executable(code-values EXCLUDE_FROM_ALL test/code_values.cpp)
target_compile_options(code-values PRIVATE -Wno-unknown-pragmas)
add_test(NAME code-values COMMAND code-values)
list(APPEND CUDA_TESTS device-scope marlin-words code-values)
# Exits with 77 where there is no device.
add_test(NAME cuda-test COMMAND cuda-test)
set_tests_properties(cuda-test PROPERTIES SKIP_RETURN_CODE 77)
