package org.sparkfp4.calibration;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.plan.InputAmaxes;

/** The amax of layers' inputs, by a rule, as statistics tell it. */
public final class MeasuredAmaxes implements InputAmaxes {
  private static final Pattern EXPERT = Pattern.compile("(.*\\.experts)\\.\\d+(\\.[^.]+)");

  private final Map<String, Float> modules = new HashMap<>();
  private final Map<String, ModuleStatistics> figures = new HashMap<>();
  private final Map<String, Float> experts = new HashMap<>();

  /**
   * Takes over the figures of a folder's modules.
   *
   * @throws IllegalArgumentException if a figure of a module cannot be: NaN, infinite or negative
   */
  public MeasuredAmaxes(StatisticsIndex index, InputScaleRule rule) {
    for (ModuleStatistics module : index.modules()) {
      float amax = rule.amax(module);
      if (!(amax >= 0 && amax <= Float.MAX_VALUE) || module.tokens() < 0) {
        throw new IllegalArgumentException("Invalid statistics of module " + module.module() + ": "
            + (module.tokens() < 0 ? "tokens " + module.tokens() : rule.optionName() + " " + amax)
            + ", must be finite and not negative; calibrate anew");
      }

      figures.put(module.module(), module);
      if (module.tokens() > 0 && !Nvfp4.isZero(amax)) {
        modules.put(module.module(), amax);
        Matcher expert = EXPERT.matcher(module.module());
        if (expert.matches()) {
          experts.merge(expert.group(1) + expert.group(2), amax, Math::max);
        }
      }
    }
  }

  @Override
  public Float own(List<String> layers) {
    List<ModuleStatistics> all = layers.stream().map(figures::get).filter(found -> found != null).toList();
    for (ModuleStatistics other : all) {
      if (!other.sameAs(all.get(0))) {
        throw new IllegalArgumentException("Invalid statistics: " + all.get(0).module() + " and " + other.module()
            + " have one input, but statistics of different ones; calibrate one of them, or both with the same tokens");
      }
    }

    return layers.stream().map(modules::get).filter(amax -> amax != null).max(Float::compare).orElse(null);
  }

  @Override
  public Float peers(List<String> layers) {
    return layers.stream()
        .map(EXPERT::matcher)
        .filter(Matcher::matches)
        .map(expert -> experts.get(expert.group(1) + expert.group(2)))
        .filter(amax -> amax != null)
        .max(Float::compare)
        .orElse(null);
  }
}
