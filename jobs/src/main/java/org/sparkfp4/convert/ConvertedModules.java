package org.sparkfp4.convert;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.plan.KeptModule;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.safetensors.DType;

/**
 * The modules of a conversion as a plan has them from which layouts make their configuration: those that are NVFP4, and
 * those that are not.
 */
final class ConvertedModules {
  private static final String WHY = "not quantized";

  private ConvertedModules() {}

  static QuantizationPlan of(SourceModel model, PlanOptions options) {
    List<ShardItem> items = new ArrayList<>();
    for (ExpertLayer layer : model.layers()) {
      for (int e = 0; e < layer.shape().experts(); e++) {
        layer.modules(e).forEach(linear -> items.add(quantized(linear, items.size())));
      }
    }

    model.linears().forEach(linear -> items.add(
        quantized(new LinearShape(linear.module(), linear.rows(), linear.cols()), items.size())));
    Set<String> kept = new LinkedHashSet<>();
    declared(model.config().path("quantization_config").path("ignore"), kept);
    for (LocatedTensor tensor : model.others()) {
      if (tensor.shape().size() >= 2 && SourceTensors.isWeight(tensor.name())) {
        kept.add(SourceTensors.module(tensor.name()));
      }
    }

    items.forEach(item -> kept.remove(((ShardItem.Quantized) item).unit().name()));
    return new QuantizationPlan("", "", options, "", 0, List.of(),
        List.of(new OutputShard(0, "", 0, items)), kept.stream().map(name -> new KeptModule(name, WHY)).toList(),
        List.of());
  }

  /** Modules by their whole names: a head that shares the embedding's weight has no tensor of its own. */
  private static void declared(JsonNode ignore, Set<String> kept) {
    for (JsonNode entry : ignore) {
      if (entry.asText().matches("[\\w.]+")) {
        kept.add(entry.asText());
      }
    }
  }

  private static ShardItem quantized(LinearShape linear, int id) {
    LocatedTensor weight = new LocatedTensor(
        linear.module() + ".weight", DType.BF16, List.of(linear.rows(), linear.cols()), "", 0,
        2 * linear.rows() * linear.cols());
    return new ShardItem.Quantized(
        new Unit(id, linear.module(), DType.BF16.name(), linear.cols(),
            List.of(new Member(linear.module(), weight, null))),
        List.of());
  }
}
