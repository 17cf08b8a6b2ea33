package org.sparkfp4.plan;

import java.util.List;
import java.util.stream.Stream;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.checkpoint.SyntheticModel;
import org.sparkfp4.layouts.Layouts;

/** Plans of models that have no files. */
public final class SyntheticPlans {
  private SyntheticPlans() {}

  public static QuantizationPlan of(SyntheticModel model, PlanOptions options) {
    return of(model, options, 256L << 20);
  }

  static QuantizationPlan of(SyntheticModel model, PlanOptions options, long slabBytes) {
    List<SourceFile> files = model.tensors().stream()
        .map(LocatedTensor::file)
        .distinct()
        .map(file -> new SourceFile(file, 1000, 0))
        .toList();
    PlanSource source = new PlanSource("file:/models/synthetic", model.config(), files, model.tensors());
    Planner planner = new Planner(
        source, ModelFamily.of(model.config()), Layouts.named(options.layout()), options, slabBytes, null);
    return planner.plan();
  }

  public static PlanOptions modelOpt(String targets) {
    return new PlanOptions("modelopt", "rtn", targets, false, 0);
  }

  static Stream<Unit> units(QuantizationPlan plan) {
    return plan.shards().stream().flatMap(shard -> shard.units().stream());
  }
}
