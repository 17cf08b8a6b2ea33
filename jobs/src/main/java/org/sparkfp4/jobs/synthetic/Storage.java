package org.sparkfp4.jobs.synthetic;

import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.jobs.synthetic.SyntheticTensor.Kind;
import org.sparkfp4.safetensors.DType;

/** How a template's tensor is stored: as one tensor, or as codes with scales in one of the published spellings. */
final class Storage {
  private static final long FP8_BLOCK = 128;
  private static final long GROUP = 32;

  private final String name;
  private final List<Long> shape;
  private final List<SyntheticTensor> tensors;

  private Storage(String name, List<Long> shape, List<SyntheticTensor> tensors) {
    this.name = name;
    this.shape = shape;
    this.tensors = tensors;
  }

  /**
   * Adds what a line of a template stands for.
   *
   * @param name the tensor's name, or the module's where there are codes and scales
   * @param text sizes with commas between them, then, with a space between, how they are stored
   * @param dtype element type of what is not stored quantized
   */
  static void add(
      String name, String text, FamilyTemplate.Sizes sizes, DType dtype, List<SyntheticTensor> tensors) {
    String[] words = text.split(" ");
    List<Long> shape = new ArrayList<>();
    for (String size : words[0].split(",")) {
      shape.add(sizes.value(size));
    }

    new Storage(name, shape, tensors).add(words.length == 1 ? "" : words[1], dtype);
  }

  private void add(String storage, DType dtype) {
    switch (storage) {
      case "" -> add(name.endsWith(".weight") ? "" : ".weight", dtype, Kind.WEIGHT, shape);
      case "weight" -> add("", dtype, Kind.WEIGHT, shape);
      case "norm" -> add("", dtype, Kind.NORM, shape);
      case "F32" -> add("", DType.F32, Kind.WEIGHT, shape);
      case "fp8" -> {
        add(".weight", DType.F8_E4M3, Kind.CODES, shape);
        add(".weight_scale_inv", DType.F32, Kind.SCALE, scales(FP8_BLOCK, FP8_BLOCK));
      }
      case "fp8_ue8m0" -> {
        add(".weight", DType.F8_E4M3, Kind.CODES, shape);
        add(".scale", DType.F8_E8M0, Kind.SCALE, scales(FP8_BLOCK, FP8_BLOCK));
      }
      case "mxfp4_i8" -> {
        add(".weight", DType.I8, Kind.CODES, packed(2));
        add(".scale", DType.F8_E8M0, Kind.SCALE, scales(1, GROUP));
      }
      case "mxfp4" -> {
        add(".weight_packed", DType.U8, Kind.CODES, packed(2));
        add(".weight_scale", DType.U8, Kind.SCALE, scales(1, GROUP));
      }
      case "mxfp4_blocks" -> {
        List<Long> blocks = new ArrayList<>(scales(1, GROUP));
        blocks.add(GROUP / 2);
        add("_blocks", DType.U8, Kind.CODES, blocks);
        add("_scales", DType.U8, Kind.SCALE, scales(1, GROUP));
      }
      case "int4" -> {
        add(".weight_packed", DType.I32, Kind.CODES, packed(8));
        add(".weight_scale", DType.BF16, Kind.SCALE, scales(1, GROUP));
        add(".weight_shape", DType.I64, Kind.SHAPE, List.of(2L));
      }
      default -> throw new IllegalStateException("Cannot store " + name + " as " + storage);
    }
  }

  private void add(String suffix, DType type, Kind kind, List<Long> dimensions) {
    tensors.add(new SyntheticTensor(name + suffix, type, dimensions, kind, kind == Kind.SHAPE ? shape : List.of()));
  }

  private List<Long> packed(long elements) {
    List<Long> packed = new ArrayList<>(shape);
    packed.set(packed.size() - 1, shape.get(shape.size() - 1) / elements);
    return packed;
  }

  private List<Long> scales(long blockRows, long blockCols) {
    List<Long> scales = new ArrayList<>(shape);
    int rows = scales.size() - 2;
    scales.set(rows, (scales.get(rows) + blockRows - 1) / blockRows);
    scales.set(rows + 1, (scales.get(rows + 1) + blockCols - 1) / blockCols);
    return scales;
  }
}
