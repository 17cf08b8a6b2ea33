package org.sparkfp4.convert;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.TensorInfo;

/** How a checkpoint of modules names the tensors of an NVFP4 layer, and which form its scalars have. */
enum ModuleForm {
  MODELOPT("modelopt", "weight", "weight_scale", "weight_scale_2", "input_scale", false, List.of()),
  COMPRESSED_TENSORS("compressed-tensors", "weight_packed", "weight_scale", "weight_global_scale", "input_global_scale",
      true, List.of(1L));

  private final String layout;
  private final String codes;
  private final String scales;
  private final String global;
  private final String input;
  private final boolean reciprocal;
  private final List<Long> scalarShape;

  ModuleForm(String layout, String codes, String scales, String global, String input, boolean reciprocal,
      List<Long> scalarShape) {
    this.layout = layout;
    this.codes = codes;
    this.scales = scales;
    this.global = global;
    this.input = input;
    this.reciprocal = reciprocal;
    this.scalarShape = scalarShape;
  }

  /** The form of a layout, where it is one of modules. */
  static Optional<ModuleForm> named(String layout) {
    return Arrays.stream(values()).filter(form -> form.layout.equals(layout)).findFirst();
  }

  String layout() {
    return layout;
  }

  String codes(String module) {
    return module + "." + codes;
  }

  String scales(String module) {
    return module + "." + scales;
  }

  String global(String module) {
    return module + "." + global;
  }

  String input(String module) {
    return module + "." + input;
  }

  /** Whether weights are divided by the stored scale. */
  boolean reciprocal() {
    return reciprocal;
  }

  /** The module of a tensor that is a global scale in this form, or null. */
  String moduleOf(String tensor) {
    return tensor.endsWith("." + global) ? tensor.substring(0, tensor.length() - global.length() - 1) : null;
  }

  /** Whether a tensor is a global scale in this form, of a module or of the stacked experts of one. */
  boolean isGlobal(String tensor) {
    return isPart(tensor, global);
  }

  /** Whether it is a scale of activations likewise. */
  boolean isInput(String tensor) {
    return isPart(tensor, input);
  }

  private static boolean isPart(String tensor, String part) {
    return tensor.endsWith("." + part) || tensor.endsWith("_" + part);
  }

  /**
   * The tensors of layers that are kept together: scalars first, since they need alignment, then codes and scales layer
   * by layer.
   *
   * @param withInput whether there is a scale of activations, layer by layer
   */
  List<TensorInfo> tensors(List<LinearShape> layers, List<Boolean> withInput) {
    List<TensorInfo> tensors = new ArrayList<>();
    for (int i = 0; i < layers.size(); i++) {
      String module = layers.get(i).module();
      add(tensors, global(module), DType.F32, scalarShape);
      if (withInput.get(i)) {
        add(tensors, input(module), DType.F32, scalarShape);
      }
    }

    for (LinearShape layer : layers) {
      add(tensors, codes(layer.module()), DType.U8, List.of(layer.rows(), layer.cols() / 2));
      add(tensors, scales(layer.module()), DType.F8_E4M3, List.of(layer.rows(), layer.cols() / Nvfp4.BLOCK));
    }

    return tensors;
  }

  private static void add(List<TensorInfo> tensors, String name, DType dtype, List<Long> shape) {
    long begin = tensors.isEmpty() ? 0 : tensors.get(tensors.size() - 1).end();
    long elements = shape.stream().reduce(1L, Math::multiplyExact);
    tensors.add(new TensorInfo(name, dtype, shape, begin, begin + dtype.bytes(elements)));
  }
}
