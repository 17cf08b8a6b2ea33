package org.sparkfp4.convert;

import java.io.Serializable;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.safetensors.TensorInfo;

/** A run of bytes of an output file; a file's items follow one another without gaps. */
sealed interface ConvertItem extends Serializable {
  /** The tensors of the item, in the order of their bytes. */
  List<TensorInfo> outputs();

  /** The same item with other places. */
  ConvertItem at(List<TensorInfo> placed);

  /** A tensor that is carried over byte for byte. */
  record Copied(LocatedTensor source, List<TensorInfo> outputs) implements ConvertItem {
    @Override
    public ConvertItem at(List<TensorInfo> placed) {
      return new Copied(source, placed);
    }
  }

  /**
   * Layers that both store by themselves.
   *
   * @param sources kept together: those of an expert, or one
   * @param form of the output
   */
  record Linears(List<QuantizedLinear> sources, ModuleForm form, List<TensorInfo> outputs) implements ConvertItem {
    @Override
    public ConvertItem at(List<TensorInfo> placed) {
      return new Linears(sources, form, placed);
    }
  }

  /**
   * An expert that the source stacks with others.
   *
   * @param layer the layer
   * @param expert its number
   * @param form of the output
   */
  record Expert(ExpertLayer layer, int expert, ModuleForm form, List<TensorInfo> outputs) implements ConvertItem {
    @Override
    public ConvertItem at(List<TensorInfo> placed) {
      return new Expert(layer, expert, form, placed);
    }
  }

  /**
   * A layer's experts that the output stacks.
   *
   * @param layer the layer
   * @param layout of the output
   */
  record Layer(ExpertLayer layer, ExpertLayout layout, List<TensorInfo> outputs) implements ConvertItem {
    @Override
    public ConvertItem at(List<TensorInfo> placed) {
      return new Layer(layer, layout, placed);
    }
  }

  /** Bytes of the item. */
  default long length() {
    return outputs().stream().mapToLong(TensorInfo::length).sum();
  }

  /** What the item's place must be a multiple of: the largest element's bytes. */
  default int alignment() {
    return outputs().stream().mapToInt(tensor -> Math.max(1, tensor.dtype().bits() / 8)).max().orElse(1);
  }

  /** The item with its first byte at {@code begin} of a file's data. */
  default ConvertItem from(long begin) {
    long first = outputs().get(0).begin();
    return at(outputs().stream()
        .map(tensor -> new TensorInfo(tensor.name(), tensor.dtype(), tensor.shape(), tensor.begin() - first + begin,
            tensor.end() - first + begin))
        .toList());
  }
}
