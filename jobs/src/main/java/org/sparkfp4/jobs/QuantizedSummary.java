package org.sparkfp4.jobs;

import java.io.IOException;
import java.io.PrintWriter;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.convert.FoundLayout;
import org.sparkfp4.files.Printable;
import org.sparkfp4.layouts.ActivationLayout;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.plan.ActivationPlanner;
import org.sparkfp4.plan.PlanOptions;

/**
 * What {@code inspect} tells of what is in NVFP4 already.
 *
 * @param what {@code W4A4} or {@code W4A16} of a checkpoint, or {@code activations}
 * @param layout its name
 * @param producer what wrote it, or null where no manifest says so
 * @param source the folder that it was made from, or null likewise
 * @param targets which layers were quantized, or null likewise
 * @param scaleSearch how block scales were chosen, or null likewise
 */
record QuantizedSummary(
    String what, String layout, String producer, String source, String targets, String scaleSearch) {

  /** The summary of a checkpoint; null where it has no NVFP4 tensors. */
  static QuantizedSummary of(Configuration conf, Checkpoint checkpoint, OutputFolder folder) throws IOException {
    Manifest manifest = folder == null ? null : folder.manifest();
    PlanOptions options = manifest == null ? null : manifest.options();
    if (options == null) {
      FoundLayout found = FoundLayout.of(conf, checkpoint).orElse(null);
      return found == null
          ? null
          : new QuantizedSummary(scheme(found.weightOnly()), found.name(), null, null, null, null);
    }

    boolean isActivations = options.targets().equals(ActivationPlanner.TARGETS);
    return new QuantizedSummary(
        isActivations ? ActivationPlanner.TARGETS : scheme(options.weightOnly()),
        ActivationLayout.optionName(options.layout()), manifest.producer(),
        manifest.input(), options.targets(), options.scaleSearch());
  }

  private static String scheme(boolean weightOnly) {
    return weightOnly ? "W4A16" : "W4A4";
  }

  void print(PrintWriter out) {
    out.printf("format        NVFP4 (%s), layout %s%n", what, layout);
    ExpertLayout.named(layout).ifPresent(stacked -> out.printf("experts       as %s%n", stacked.takenBy()));
    if (source == null) {
      out.printf("manifest      none: it was not made by Spark FP4, or its manifest was left out of a copy%n");
    } else {
      out.printf("manifest      %s, by %s%n", Manifest.FILE, Printable.of(producer));
      out.printf("made from     %s, targets %s, scale search %s%n", Printable.of(source), targets, scaleSearch);
    }
  }
}
