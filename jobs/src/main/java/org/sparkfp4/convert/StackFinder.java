package org.sparkfp4.convert;

import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.ExpertShape;
import org.sparkfp4.layouts.StackPart;

/** Finds the layers whose routed experts are stacked: the metadata describes each. */
final class StackFinder {
  private final UnclaimedTensors tensors;
  private final SourceMetadata metadata;

  StackFinder(UnclaimedTensors tensors, SourceMetadata metadata) {
    this.tensors = tensors;
    this.metadata = metadata;
  }

  /**
   * Claims the layers' tensors.
   *
   * @throws IllegalArgumentException if a description is none, or the tensors are not what it says
   */
  List<ExpertLayer> find() {
    List<ExpertLayer> layers = new ArrayList<>();
    metadata.values().forEach((key, value) -> {
      if (key.startsWith(StackDescription.KEY)) {
        try {
          layers.add(layer(key, StackDescription.parse(metadata.named(key), value)));
        } catch (ArithmeticException e) {
          throw new IllegalArgumentException("Invalid metadata " + metadata.named(key)
              + ": its sizes are larger than any tensor; convert the checkpoint anew", e);
        }
      }
    });
    return layers;
  }

  private ExpertLayer layer(String key, StackDescription described) {
    String where = metadata.named(key);
    ExpertLayout layout = ExpertLayout.named(described.layout()).orElseThrow(() -> new IllegalArgumentException(
        "Invalid metadata " + where + ": layout " + described.layout() + " is none of " + ExpertLayout.names()));
    ExpertShape shape = described.shape();
    List<LocatedTensor> parts = new ArrayList<>();
    for (int i = 0; i < layout.parts().size(); i++) {
      String name = i < described.tensors().size() ? described.tensors().get(i) : "";
      parts.add(part(key, name, layout, layout.parts().get(i), shape));
    }

    List<List<GlobalScale>> globals =
        described.globals().stream().map(text -> described.scales(where, text)).toList();
    if (globals.stream().anyMatch(List::isEmpty)) {
      throw new IllegalArgumentException("Invalid metadata " + where + ": it has no global scales");
    }

    String path = key.substring(StackDescription.KEY.length());
    return new ExpertLayer(path, described.projections(), shape, tensors.routerBias(path, shape.experts()),
        new StoredExperts.Stack(layout, parts, globals,
            described.inputs().stream().map(text -> described.scales(where, text)).toList()));
  }

  private LocatedTensor part(String key, String name, ExpertLayout layout, StackPart part, ExpertShape shape) {
    LocatedTensor tensor = tensors.claim(name);
    List<Long> expected = layout.shapeOf(shape, part);
    if (tensor == null || tensor.dtype() != layout.dtype(part) || !tensor.shape().equals(expected)) {
      throw new IllegalArgumentException("Cannot convert " + key + ": tensor \"" + name + "\" is "
          + (tensor == null ? "missing" : tensor.dtype() + " " + tensor.shape()) + ", layout " + layout.optionName()
          + " has " + layout.dtype(part) + " " + expected + "; convert the checkpoint anew from its source");
    }

    return tensor;
  }
}
