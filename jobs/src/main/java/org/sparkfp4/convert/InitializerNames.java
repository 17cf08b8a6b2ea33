package org.sparkfp4.convert;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.StackPart;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * Names of the tensors of stacked experts: the experts' path and the plugin's input, or those that an existing export
 * gave its plugins' initializers. An export's container has its tensors in the order of layers and, in a layer, of inputs.
 */
final class InitializerNames {
  private final List<TensorInfo> export;
  private final String file;

  private InitializerNames(List<TensorInfo> export, String file) {
    this.export = export;
    this.file = file;
  }

  /** {@code PATH.fc1_qweights} and so on. */
  static InitializerNames byPath() {
    return new InitializerNames(List.of(), null);
  }

  /** Those of a container. */
  static InitializerNames ofExport(Configuration conf, String file) throws IOException {
    Path path = new Path(file);
    return new InitializerNames(SafetensorsHeader.read(RawFileSystem.of(path, conf), path).tensors(), file);
  }

  /**
   * The tensors of a layer, each with its name, the first at 0.
   *
   * @param number of the layer among those with experts
   * @throws IllegalArgumentException if the export's tensor is another
   */
  List<TensorInfo> tensors(ExpertLayer layer, int number, ExpertLayout layout) {
    List<TensorInfo> tensors = new ArrayList<>();
    long begin = 0;
    List<StackPart> parts = layout.parts();
    for (int i = 0; i < parts.size(); i++) {
      StackPart part = parts.get(i);
      List<Long> shape = layout.shapeOf(layer.shape(), part);
      long end = begin + layout.dtype(part).bytes(shape.stream().reduce(1L, Math::multiplyExact));
      TensorInfo tensor =
          new TensorInfo(layer.path() + "." + layout.nameOf(part), layout.dtype(part), shape, begin, end);
      tensors.add(file == null ? tensor : named(tensor, number * parts.size() + i));
      begin = end;
    }

    return tensors;
  }

  private TensorInfo named(TensorInfo tensor, int place) {
    TensorInfo known = place < export.size() ? export.get(place) : null;
    if (known == null || known.dtype() != tensor.dtype() || !known.shape().equals(tensor.shape())) {
      throw new IllegalArgumentException("Cannot take the name of " + tensor.name() + " from " + file + ": its tensor "
          + "number " + place + " is " + (known == null ? "missing" : known.name() + ", " + known.dtype() + " "
              + known.shape()) + ", this one is " + tensor.dtype() + " " + tensor.shape()
          + "; give the container of an export of this model for this target");
    }

    return new TensorInfo(known.name(), tensor.dtype(), tensor.shape(), tensor.begin(), tensor.end());
  }

  /**
   * Requires that an export has no further layers.
   *
   * @throws IllegalArgumentException naming its first tensor that was not taken
   */
  void requireAllTaken(int layers, ExpertLayout layout) {
    int taken = layers * layout.parts().size();
    if (file != null && export.size() != taken) {
      throw new IllegalArgumentException("Cannot take names from " + file + ": it has " + export.size()
          + " tensors, the model's " + layers + " layers of experts have " + taken
          + "; give the container of an export of this model for this target");
    }
  }
}
