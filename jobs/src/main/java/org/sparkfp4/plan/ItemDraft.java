package org.sparkfp4.plan;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * A tensor or a unit before its place in a shard is known.
 *
 * @param anchor where the source has it: the tensor, or the first member of the unit
 * @param unit the unit, or null for a tensor that is not quantized
 * @param stored how a tensor is stored that is dequantized or carried over, or null for a unit and a tensor that is
 *     copied
 * @param carried the tensors of a weight that stays as it is stored
 * @param tensors the tensors that the unit becomes, counted from its own first byte
 * @param inputScale the global scale of a unit's input, or null
 * @param length bytes of the item
 * @param alignment what the place of the item must be a multiple of: the largest element's bytes
 */
record ItemDraft(
    LocatedTensor anchor,
    Unit unit,
    StoredWeight stored,
    List<CarriedTensor> carried,
    List<UnitTensor> tensors,
    InputScale inputScale,
    long length,
    int alignment) {
  static ItemDraft copied(LocatedTensor tensor) {
    return new ItemDraft(tensor, null, null, List.of(), List.of(), null, tensor.length(), alignment(tensor.dtype()));
  }

  static ItemDraft dequantized(StoredWeight stored) {
    LocatedTensor weight = stored.weight();
    long length = DType.BF16.bytes(Math.multiplyExact(weight.rows(), weight.cols()));
    return new ItemDraft(weight, null, stored, List.of(), List.of(), null, length, alignment(DType.BF16));
  }

  /** A weight that stays stored as it is; its tensors follow one another without gaps, the widest elements first. */
  static ItemDraft carried(StoredWeight stored, List<CarriedTensor> tensors) {
    List<CarriedTensor> ordered = new ArrayList<>(tensors);
    ordered.sort(Comparator.comparingInt((CarriedTensor tensor) -> -alignment(tensor.source().dtype())));
    long length = tensors.stream().mapToLong(tensor -> tensor.source().length()).sum();
    int widest = alignment(ordered.get(0).source().dtype());
    return new ItemDraft(stored.weight(), null, stored, ordered, List.of(), null, length, widest);
  }

  static ItemDraft quantized(Unit unit, List<UnitTensor> tensors, InputScale inputScale) {
    int alignment = tensors.stream().mapToInt(tensor -> alignment(tensor.output().dtype())).max().orElseThrow();
    long length = tensors.get(tensors.size() - 1).output().end();
    return new ItemDraft(
        unit.members().get(0).weight(), unit, null, List.of(), tensors, inputScale, length, alignment);
  }

  private static int alignment(DType dtype) {
    return Math.max(1, dtype.bits() / 8);
  }

  /** The item with its first byte at {@code begin} of a shard's data section. */
  ShardItem at(long begin) {
    if (unit != null) {
      return quantizedAt(begin);
    }

    if (stored == null) {
      return new ShardItem.Copied(
          anchor, new TensorInfo(anchor.name(), anchor.dtype(), anchor.shape(), begin, begin + anchor.length()));
    }

    return carried.isEmpty() ? dequantizedAt(begin) : carriedAt(begin);
  }

  private ShardItem dequantizedAt(long begin) {
    return new ShardItem.Dequantized(
        anchor,
        stored.scale(),
        stored.scheme().text(),
        new TensorInfo(
            SourceTensors.module(anchor.name()) + ".weight", DType.BF16, anchor.shape(), begin, begin + length));
  }

  private ShardItem carriedAt(long begin) {
    List<TensorInfo> outputs = new ArrayList<>();
    long place = begin;
    for (CarriedTensor tensor : carried) {
      long end = place + tensor.source().length();
      outputs.add(new TensorInfo(tensor.name(), tensor.source().dtype(), tensor.shape(), place, end));
      place = end;
    }

    return new ShardItem.Carried(
        anchor, stored.scheme().text(), carried.stream().map(CarriedTensor::source).toList(), outputs);
  }

  private ShardItem quantizedAt(long begin) {
    List<UnitTensor> placed = new ArrayList<>();
    for (UnitTensor tensor : tensors) {
      TensorInfo output = tensor.output();
      placed.add(new UnitTensor(
          tensor.member(),
          tensor.part(),
          new TensorInfo(
              output.name(), output.dtype(), output.shape(), begin + output.begin(), begin + output.end())));
    }

    return new ShardItem.Quantized(unit, placed, inputScale);
  }
}
