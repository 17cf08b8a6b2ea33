package org.sparkfp4.plan;

import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.safetensors.TensorInfo;

/** A run of bytes of an output shard; a shard's items follow one another without gaps. */
@JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "kind")
@JsonSubTypes({
  @JsonSubTypes.Type(value = ShardItem.Copied.class, name = "copied"),
  @JsonSubTypes.Type(value = ShardItem.Carried.class, name = "carried"),
  @JsonSubTypes.Type(value = ShardItem.Dequantized.class, name = "dequantized"),
  @JsonSubTypes.Type(value = ShardItem.Quantized.class, name = "quantized")
})
public sealed interface ShardItem {
  /** The tensors of the item, in the order of their bytes. */
  List<TensorInfo> outputs();

  /** The tensors of the source that the item is made from. */
  List<LocatedTensor> sources();

  /** Bytes of these. */
  default long sourceBytes() {
    return sources().stream().mapToLong(LocatedTensor::length).sum();
  }

  /** A tensor that is carried over byte for byte. */
  record Copied(LocatedTensor source, TensorInfo output) implements ShardItem {
    @Override
    public List<TensorInfo> outputs() {
      return List.of(output);
    }

    @Override
    public List<LocatedTensor> sources() {
      return List.of(source);
    }
  }

  /**
   * A weight that both store quantized, in the same bytes.
   *
   * @param weight its codes; the shape is the logical {@code [rows, K]}
   * @param scheme as {@link org.sparkfp4.formats.SourceScheme#parse} takes it
   * @param sources codes, scales and what belongs to them, in the order of their bytes
   * @param outputs name, dtype, shape and place of each
   */
  record Carried(LocatedTensor weight, String scheme, List<LocatedTensor> sources, List<TensorInfo> outputs)
      implements ShardItem {
    public Carried {
      sources = List.copyOf(sources);
      outputs = List.copyOf(outputs);
    }
  }

  /**
   * A weight that the source stores quantized and the output in BF16.
   *
   * @param weight its codes; the shape is the logical {@code [rows, K]}
   * @param scale its scales
   * @param scheme as {@link org.sparkfp4.formats.SourceScheme#parse} takes it
   * @param output name, dtype, shape and place
   */
  record Dequantized(LocatedTensor weight, LocatedTensor scale, String scheme, TensorInfo output)
      implements ShardItem {
    @Override
    public List<TensorInfo> outputs() {
      return List.of(output);
    }

    @Override
    public List<LocatedTensor> sources() {
      return List.of(weight, scale);
    }
  }

  /**
   * A unit and the tensors that its members become, in the order of their bytes, member by member.
   *
   * @param inputScale the global scale of their common input
   */
  record Quantized(Unit unit, List<UnitTensor> tensors, InputScale inputScale) implements ShardItem {
    public Quantized {
      tensors = List.copyOf(tensors);
    }

    /** A unit of whose input nothing is known. */
    public Quantized(Unit unit, List<UnitTensor> tensors) {
      this(unit, tensors, InputScale.ASSUMED);
    }

    @Override
    public List<TensorInfo> outputs() {
      return tensors.stream().map(UnitTensor::output).toList();
    }

    @Override
    public List<LocatedTensor> sources() {
      return unit.members().stream().flatMap(member -> member.sources().stream()).toList();
    }
  }
}
