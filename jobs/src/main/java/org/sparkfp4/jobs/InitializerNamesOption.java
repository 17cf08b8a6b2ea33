package org.sparkfp4.jobs;

import picocli.CommandLine.Option;

/** {@code --initializer-names}, which commands that write TensorRT Edge-LLM's container take. */
final class InitializerNamesOption {
  @Option(
      names = "--initializer-names",
      paramLabel = "FILE",
      converter = FolderText.class,
      description = "Of the layouts trt-edge-llm-*: the external_nvfp4_moe_weights.safetensors of an existing export of the "
          + "model, whose tensor names are taken; default: PATH.fc1_qweights and so on, PATH being the experts', such as "
          + "model.layers.0.mlp.experts.")
  private String file;

  /** The file, or null. */
  String file() {
    return file;
  }
}
