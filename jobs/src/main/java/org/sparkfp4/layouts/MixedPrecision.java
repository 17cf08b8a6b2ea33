package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.ScaleType;
import org.sparkfp4.formats.WeightScheme;
import org.sparkfp4.plan.CarriedTensor;
import org.sparkfp4.plan.ConfigFile;
import org.sparkfp4.plan.KeptModule;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.safetensors.DType;

/**
 * ModelOpt's {@code MIXED_PRECISION}: {@code quantized_layers} names each layer's algorithm. Of the source's, runtimes
 * read FP8 with one scale a tensor and a stored one of its activations, and MXFP8.
 */
final class MixedPrecision {
  private static final String ALGORITHM = "MIXED_PRECISION";
  private static final String LAYERS = "quantized_layers";
  private static final long MX_GROUP = 32;
  private static final WeightScheme FP8 = new WeightScheme(CodeType.E4M3, ScaleType.F32, 0, 0);
  private static final WeightScheme MXFP8 = new WeightScheme(CodeType.E4M3, ScaleType.E8M0, 1, MX_GROUP);

  private MixedPrecision() {}

  /** See {@link Layout#carry}. */
  static List<CarriedTensor> carry(KeptWeight kept) {
    kept.require(kept.parts().codes().shape().size() == 2, "it is no matrix of one layer");
    if (kept.weight().scheme().equals(MXFP8)) {
      // loaders copy the scales to bytes: of another dtype they would become numbers
      kept.require(
          kept.parts().scale().dtype() == DType.U8 && kept.weight().weight().cols() % MX_GROUP == 0,
          "layout modelopt has MXFP8 as U8 scales of 32 columns each, all of them whole");
      return List.of(kept.codes("weight"), kept.scale("weight_scale", kept.parts().scale().shape()));
    }

    LocatedTensor inputScale = kept.parts().other("input_scale").orElse(null);
    kept.require(
        kept.weight().scheme().equals(FP8)
            && inputScale != null
            && inputScale.dtype() == DType.F32
            && inputScale.rows() * inputScale.cols() == 1,
        "layout modelopt keeps MXFP8, and FP8 that has one F32 scale and an F32 input_scale, and no other; layout "
            + "compressed-tensors keeps FP8 with scales in blocks or rows, INT4 and MXFP4");
    return List.of(
        kept.codes("weight"), kept.scale("weight_scale", List.of()), kept.part(inputScale, "input_scale", List.of()));
  }

  /** See {@link Layout#configs}. */
  static List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan, ModulePaths paths) {
    List<String> exclusions = ModelOptLayout.globs(paths.highPrecision());
    ObjectNode layers = layers(plan);
    ObjectNode flat = ConfigJson.object();
    flat.put("quant_method", "modelopt");
    flat.put("quant_algo", ALGORITHM);
    flat.put("group_size", Nvfp4.BLOCK);
    flat.set("producer", ModelOptLayout.producer());
    ModelOptLayout.addAll(flat.putArray("ignore"), exclusions);
    flat.set(LAYERS, layers);
    ObjectNode nested = ModelOptLayout.nested(ALGORITHM, exclusions);
    ((ObjectNode) nested.path("quantization")).set(LAYERS, layers);
    return List.of(ConfigJson.with(sourceConfig, flat), new ConfigFile(Checkpoint.QUANT_CONFIG, nested));
  }

  private static ObjectNode layers(QuantizationPlan plan) {
    ObjectNode layers = ConfigJson.object();
    String algorithm = plan.options().weightOnly() ? "W4A16_NVFP4" : "NVFP4";
    QuantizedModules.of(plan).forEach(
        module -> layers.putObject(module).put("quant_algo", algorithm).put("group_size", Nvfp4.BLOCK));
    for (KeptModule kept : plan.kept()) {
      if (kept.format() != null) {
        boolean mxfp8 = kept.format().scheme().equals(MXFP8.text());
        layers.putObject(QuantizedModules.name(kept.module())).put("quant_algo", mxfp8 ? "MXFP8" : "FP8");
      }
    }

    return layers;
  }
}
