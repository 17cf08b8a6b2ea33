package org.sparkfp4.layouts;

import java.util.LinkedHashSet;
import java.util.Set;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;

/** The modules of a plan by the names of {@code quantized_layers}, in which all experts of a layer are one. */
final class QuantizedModules {
  private QuantizedModules() {}

  /** Those that become NVFP4. */
  static Set<String> of(QuantizationPlan plan) {
    Set<String> modules = new LinkedHashSet<>();
    for (OutputShard shard : plan.shards()) {
      for (Unit unit : shard.units()) {
        for (Member member : unit.members()) {
          modules.add(name(member.module()));
        }
      }
    }

    return modules;
  }

  /** The name of a module: that of the experts for one below them. */
  static String name(String module) {
    int experts = module.indexOf(".experts.");
    return experts < 0 ? module : module.substring(0, experts) + ".experts";
  }

  /** Whether a name is that of a layer's experts. */
  static boolean areExperts(String name) {
    return name.endsWith(".experts");
  }
}
