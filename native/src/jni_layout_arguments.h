// What the bindings of layouts for the processor and for GPUs share.
#pragma once

#include "jni_arrays.h"
#include "sparkfp4_layouts.h"

namespace {

// An arrangement and its members' addresses.
class LayoutArguments {
 public:
  LayoutArguments(JNIEnv *env, jlongArray shape, jlongArray members) {
    jsize count = env->GetArrayLength(members);
    jlong numbers[5];
    env->GetLongArrayRegion(shape, 0, 5, numbers);
    is_valid_ = count <= SPARKFP4_MAX_MEMBERS;
    if (is_valid_) {
      env->GetLongArrayRegion(members, 0, count, addresses_);
    }

    for (int i = 0; i < SPARKFP4_MAX_MEMBERS; i++) {
      members_[i] = i < count ? reinterpret_cast<void *>(addresses_[i]) : nullptr;
    }

    shape_ = {static_cast<sparkfp4_row_order>(numbers[0]), count, numbers[1], numbers[2], numbers[3], numbers[4]};
  }

  bool is_valid() const { return is_valid_; }
  const sparkfp4_arrangement *shape() const { return &shape_; }
  void *const *members() const { return members_; }

 private:
  bool is_valid_;
  sparkfp4_arrangement shape_;
  jlong addresses_[SPARKFP4_MAX_MEMBERS] = {};
  void *members_[SPARKFP4_MAX_MEMBERS];
};

inline const void *layout_source(jlong address) { return reinterpret_cast<const void *>(address); }
inline void *layout_target(jlong address) { return reinterpret_cast<void *>(address); }

// A tensor to decode, and a copy of its global scales.
class TensorArguments {
 public:
  TensorArguments(JNIEnv *env, jboolean is_activation, jlong experts, jlong rows, jlong k, jlong codes, jlong scales,
                  jfloatArray global)
      : global_(global == nullptr ? 0 : env->GetArrayLength(global)) {
    tensor_ = {is_activation, experts, rows, k, layout_source(codes), layout_source(scales), nullptr};
    if (global != nullptr && global_.data() != nullptr) {
      env->GetFloatArrayRegion(global, 0, env->GetArrayLength(global), global_.data());
      tensor_.global_scale = global_.data();
    }
  }

  bool failed() { return global_.data() == nullptr; }
  const sparkfp4_tensor *tensor() const { return &tensor_; }

 private:
  Scratch<jfloat> global_;
  sparkfp4_tensor tensor_;
};

}  // namespace
