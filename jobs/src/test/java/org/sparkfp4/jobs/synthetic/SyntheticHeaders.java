package org.sparkfp4.jobs.synthetic;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Locale;
import org.sparkfp4.safetensors.DType;

/** The config.json and the tensors' headers of a synthetic checkpoint, for tests that need no bytes. */
public final class SyntheticHeaders {
  private final SyntheticFamily family;
  private final ModelShape shape;

  public SyntheticHeaders(String family, ModelShape shape) {
    this.family = SyntheticFamily.valueOf(family.toUpperCase(Locale.ROOT));
    this.shape = shape;
  }

  /** Families that a template describes. */
  public static List<String> templates() {
    return List.of(SyntheticFamily.values()).stream()
        .filter(family -> family.template() != null)
        .map(SyntheticFamily::modelType)
        .toList();
  }

  public ObjectNode config() {
    return SyntheticConfig.of(family, shape, DType.BF16);
  }

  public List<Header> tensors() {
    return SyntheticTensors.of(family, shape, DType.BF16).stream()
        .map(tensor -> new Header(tensor.name(), tensor.dtype(), tensor.shape()))
        .toList();
  }

  public record Header(String name, DType dtype, List<Long> shape) {}
}
